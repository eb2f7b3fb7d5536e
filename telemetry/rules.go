package telemetry

// A rule, a bound: what each name in a record means, in a clause that goes on
// after "rule NAME: ". A test holds these lists to the rooms that give the
// names. The same name may mean different things for a wish and for nodes.

// wishRules are the rules of Record.Rule, with lendRules.
var wishRules = map[string]string{
	"first-sample":     "this is the first look, and rates need two of them",
	"no-time":          "no time has passed since the look before, so no rate is known",
	"counter-reset":    "a counter went backwards, so growth since the look before is not known; this look is a new beginning",
	"missing-sample":   "there is no reading of the cgroup",
	"missing-host":     "the host's own figures could not be read",
	"missing-counters": "the kernel does not print a counter that every decision rests on",
	"invalid-counters": "a counter holds what is no number or cannot be",
	"invalid-host":     "the host's own figures cannot be right",
	"bad-policy":       "the policy has a number that cannot be, so nothing follows from it",
	"lost-count":       "what was remembered of it made no sense any more and was thrown away; this look is a new beginning",
	"no-process":       "no process is in it; what is left there is for the next one, and goes when the kernel needs it or the cgroup is removed",

	"throttled":   "its tasks are stopped at memory.high and hardly anything can be reclaimed; more requests would only press harder",
	"limit-bound": "what must stay fills the limit; more requests would only press harder",
	"growing":     "it is being filled right now; it is squeezed when that has calmed down",
	"headroom":    "room is kept below its limit, so that its own tasks do not have to reclaim there",
	"streaming":   "file passes through that could not be kept in any case, so no anon is given up for it",

	"squeeze-off":       "its policy does not squeeze",
	"no-pressure-file":  "without memory.pressure nobody could tell when squeezing hurts",
	"squeeze-waits":     "the last squeeze is less than 1 s ago",
	"squeeze-tmo":       "a small step of what it holds is taken, smaller the nearer stalls and refault cost come to their targets",
	"squeeze-cold":      "what has not been used for the policy's idle_age is taken, at most ten steps of it at once",
	"squeeze-backs-off": "stalls or refault cost are above their targets; the step is halved and nothing is taken for 30 s",
	"squeeze-holds":     "it was above a target less than 30 s ago, and what was taken then may still come back",
	"senpai-waits":      "Senpai acts at every sixth look only",
	"senpai-backs-off":  "stalls of the last 10 s or 60 s are above Senpai's 0.1%",
	"squeeze-senpai":    "stalls are below Senpai's 0.1%, so 1% of what lies above the floor is taken",

	"move-anon":           "idle anon makes room for the file that is read again and again, as much as that file lacks, once",
	"move-anon-trial":     "how much file is missed is not known yet, so a little idle anon is moved to see whether refaults fall",
	"move-file":           "file makes room for the anon that is swapped in again and again, as much as that anon lacks, once",
	"move-file-trial":     "how much anon is missed is not known yet, so a little file is taken to see whether refaults fall",
	"policy-forbids-move": "the policy's swappiness does not allow to take one side (anon or file) for the other",
	"no-swap-room":        "swap has no room for anon, or none that may be used",
	"anon-not-cheap":      "anon comes back too: it would have to cost less than a quarter of what file costs",
	"file-not-cheap":      "file comes back too: it would have to cost less than a quarter of what anon costs",
	"cooling-down":        "the last move changed nothing; the next may come after 1 min, and twice as long each time up to 30 min",
	"move-settles":        "what was asked for has been moved, and whether refaults fall is being watched",
	"no-turn-back":        "memory was moved the other way less than 1 min ago, or still is",
	"nothing-cold":        "there is nothing idle to move",
	"nothing-needed":      "as much as was missed has been moved already",

	"node-short": "it wants nothing itself, and gives for a node that is short of free memory",
}

// lendRules are the rules of Lending.Rule. Those that take back are rules of
// Record.Rule too.
var lendRules = map[string]string{
	"lend":          "it reads again what it lost at its memory.high, and the host has memory that nobody needs",
	"lend-growth":   "its anon grows into its memory.high and would be swapped out there, and the host has memory that nobody needs",
	"rescue":        "its tasks were stopped at a memory.high that is memagent's, which is raised before all else",
	"trim":          "part of what was lent has not been used for 1 min, so memory.high goes down over it",
	"recall-short":  "the host or a node has less than its reserve, so what was lent is taken back",
	"recall-idle":   "it has been idle for 2 min or longer, so what was lent is taken back in steps until something is missed",
	"recall-futile": "what was lent did not make it read less again, so it is taken back",
}

// bounds are the names of Record.Clipped.
var bounds = map[string]string{
	"floor":     "below that lies what is protected, what cannot be reclaimed, or the floor of its policy",
	"swap-room": "swap has no more room, or none above what is to stay free",
	"cold":      "no more of it is idle",
	"node":      "the drawn node has no more to give",
}

// nodeRules are the rules of Record.NodeRule: from which nodes a request takes.
var nodeRules = map[string]string{
	"lottery-off":          "its policy leaves the choice of nodes to the kernel",
	"no-node-figures":      "memory.numa_stat does not tell what lies on which node, so every node gives in proportion",
	"no-figures":           "what lies on a node or comes back there is not known, so every node gives in proportion",
	"demotes-outside":      "the kernel moves what is reclaimed to nodes outside of its cpuset.mems, so nothing is asked for",
	"nothing-to-give":      "no node has anything that such a request could take",
	"not-by-node":          "this host cannot take from one node alone for now, so every node gives in proportion",
	"nothing-to-draw-from": "there is no source of random numbers to draw with, so every node gives in proportion",
	"balanced":             "what each node could give is within 20% of the average, so every node gives in proportion",
	"short-gives-no-anon":  "the request might take anon from a node that is short while another has room, where a wider cpuset.mems would cost nothing",
	"demoted":              "what an earlier request took was only moved to a slower node, so it is taken there and not asked for twice",
	"drawn":                "one node was drawn, each with a chance by what it could give",
	"drawn-short":          "a node that is short was drawn; it gives file only, since another node has room",
	"by-node-costly":       "requests to one node took more than 10% of the time of late, or twice what others take for as much, or gave less than a quarter of what was asked, so every node gives in proportion",
	"not-short":            "the node is not short any more",
	"short-everywhere":     "every node that it may use is short and has no room, so anon may go as well",
	"file-only":            "the node is short while another has room, so file only is taken there",
	"empty":                "nothing of it lies on that node",
	"slow-tier":            "the node has no CPU and its policy does not name it",
	"no-share":             "nothing that lies there counts for such a request",
}

// memsRules are the rules of Mems.Rule: which nodes a cgroup should use.
var memsRules = map[string]string{
	"keep":                "its policy leaves cpuset.mems as it is",
	"avoid-short":         "nodes that are short are left, and used again after 5 min of room, or twice as long for each time they were left lately",
	"compact":             "the fewest near nodes that hold the working set are used",
	"spread":              "every node that the parent grants and that is not short is used",
	"no-sample":           "there is no reading to plan by",
	"no-cpuset":           "it has no cpuset.mems: the cpuset controller is not enabled there",
	"no-node-figures":     "memory.numa_stat does not tell what lies on which node",
	"no-figures":          "what lies on a node, or is free there, is not known",
	"foreign-value":       "somebody else has written cpuset.mems, and it is left to them",
	"effective-unknown":   "cpuset.mems.effective is empty, so which nodes it may use is not known",
	"every-node-short":    "every node that it could use is short, so there is no better set",
	"equal-set":           "it uses the right nodes already",
	"changed-lately":      "the last change is less than 15 min ago, or less than 1 min where only nodes would be left that an earlier one had to do with",
	"changed-often":       "there were 6 changes in the last hour, or 5, of which the next must be one that leaves a node",
	"still-moving":        "the kernel is still moving memory off the nodes that were left, and the change counts from its end",
	"no-room":             "what would move does not fit on the other nodes above their high mark",
	"unknown-mode":        "the policy's numa.mems is none of those that are known",
	"working-set-unknown": "how much memory it needs is not known",
	"nowhere-fits":        "no set of nodes holds its working set",
	"compact-already":     "no smaller set of nodes holds its working set and a quarter more",
	"distances-unknown":   "the kernel does not tell how far apart the nodes are",
	"parent-unknown":      "which nodes its parent may use could not be read",
	"in-flight":           "a write to one of its files is still under way",
	"moved-nothing":       "what lies on the nodes that were left has not moved, so the set before and the new one are written once more, which gives the kernel a set to move from",
}

// rule names a rule with its meaning, which is the first found in the lists.
func rule(name string, lists ...map[string]string) string {
	for _, list := range lists {
		if text, ok := list[name]; ok {
			return name + ": " + text
		}
	}
	return name
}

// bound names a bound, what it did, and why it is there where that is known.
func bound(name, did string) string {
	text := `"` + name + `" ` + did
	if why, ok := bounds[name]; ok {
		text += ": " + why
	}
	return text
}

// explainRules says by which rules the decision came about, a line each.
func (r *Record) explainRules() (lines []string) {
	if r.Rule != "" {
		lines = append(lines, "Rule "+rule(r.Rule, wishRules, lendRules)+".")
	}
	if r.Lending.Rule != "" && r.Lending.Rule != r.Rule {
		lines = append(lines, "For lending, rule "+rule(r.Lending.Rule, lendRules)+".")
	}
	if r.NodeRule != "" {
		lines = append(lines, "For its nodes, rule "+rule(r.NodeRule, nodeRules)+".")
	}
	if r.Mems.Rule != "" {
		lines = append(lines, "For its cpuset.mems, rule "+rule(r.Mems.Rule, memsRules)+".")
	}
	return lines
}
