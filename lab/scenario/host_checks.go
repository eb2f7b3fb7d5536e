package scenario

import "github.com/memagent/memagent/lab/result"

// checkHost judges each step of the installation's life.
func checkHost(runs []result.Run) []result.Check {
	matched, idle := 0.0, []*hostContainer{}
	for _, c := range hostContainers() {
		if c.matched {
			matched++
		}
		idle = append(idle, c)
	}
	is := func(name, of string) result.Check { return least(name, runs, fact(of), 1, "(1 is yes)") }
	ticks := 2 * hostTick.Seconds() // one until the next tick, and as much for the question under emulation
	checks := []result.Check{
		is("active once installed", "active"),
		is("observes as installed", "observes"),
		most("exposure", runs, fact("exposure"), 3, "by systemd-analyze security"),
		most("policies act on containers that are there", runs, fact("policy_seconds"), ticks, "s after the start"),
		most("policies act on a new container", runs, fact("late_policy_seconds"), ticks, "s after it is up"),
		least("containers named", runs, fact("named"), matched, "by status and explain"),
		least("wishes for swappiness heeded", runs, fact("heeded"), matched, "by explain"),
		least("limits known", runs, fact("limited"), matched, "by explain"),
		most("strangers watched", runs, fact("strangers_watched"), 0, "containers"),
	}
	for _, c := range idle {
		swap, file := fact(c.who()+"_swap_mib"), fact(c.who()+"_file_mib")
		switch {
		case !c.matched:
			checks = append(checks,
				most(c.who()+": swap", runs, swap, 0, "MiB, as nobody watches it"),
				least(c.who()+": file", runs, file, hostFile*0.9/mib, "MiB, as nobody watches it"))
		case c.swappiness == 0:
			checks = append(checks,
				most(c.who()+": swap", runs, swap, 0, "MiB with swappiness 0 in its spec"),
				most(c.who()+": file", runs, file, hostFile/4/mib, "MiB of 32 that it does not use"))
		default:
			checks = append(checks, least(c.who()+": swap", runs, swap, hostAnon/2/mib, "MiB of 48 with swappiness 200 by annotation"))
		}
	}
	return append(checks,
		most("lent", runs, fact("lend_seconds"), hostLends.Seconds(), "s"),
		least("looks after the reload", runs, fact("reload_looks"), 10, "or nobody looked"),
		most("daemon-reload: loans lost", runs, fact("reload_lost"), 0, "looks"),
		most("daemon-reload: fights", runs, fact("reload_complaints"), 0, "lines about another writer"),
		is("watchdog: the loan is put back", "watchdog_restores"),
		is("watchdog: it is started again", "watchdog_restarts"),
		is("upgrade: the later version is there", "upgraded"),
		is("upgrade: the new one enforces", "restarted"),
		is("upgrade: the edited config is kept", "config_kept"),
		is("upgrade: the journal is kept", "journal_kept"),
		most("upgrade: lends again", runs, fact("upgrade_lend_seconds"), hostLends.Seconds(), "s"),
		most("purge: memory.high of the service", runs, fact("high_mib"), hostHigh/mib, "MiB, the operator's"),
		most("purge: knobs changed", runs, fact("knobs_changed"), 0, ""),
		most("purge: files left", runs, fact("files_left"), 0, ""),
		most("purge: others' files gone", runs, fact("files_gone"), 0, ""),
	)
}
