package journal

// Step names a moment at which a crash is of interest. Set and the undoing
// calls pass them in order, as far as they go; every writing of the journal
// passes StepJournalWritten and StepJournalRenamed.
type Step string

// Steps: the first six of writing the journal and a knob, the rest of undoing.
const (
	StepBeforeJournal  Step = "before-journal"  // nothing has happened yet
	StepJournalWritten Step = "journal-written" // synced under a temporary name
	StepJournalRenamed Step = "journal-renamed" // in place, its directory not synced
	StepAfterJournal   Step = "after-journal"   // on disk, the knob not written
	StepAfterWrite     Step = "after-write"     // the knob is written, nothing is read back
	StepAfterReadBack  Step = "after-read-back" // all done
	StepBeforeRestore  Step = "before-restore"  // the old value is about to be written
	StepAfterRestore   Step = "after-restore"   // it is back, the journal still has it
	StepBeforeClear    Step = "before-clear"    // the journal is about to be written without it
	StepAfterClear     Step = "after-clear"     // the journal is on disk without it
)

// Steps returns all steps.
func Steps() []Step {
	return []Step{
		StepBeforeJournal, StepJournalWritten, StepJournalRenamed, StepAfterJournal, StepAfterWrite,
		StepAfterReadBack, StepBeforeRestore, StepAfterRestore, StepBeforeClear, StepAfterClear,
	}
}
