//go:build crashpoints

package main

import (
	"testing"

	"github.com/memagent/memagent/journal"
)

func TestACrashPointIsAStepAndHowOftenItIsPassed(t *testing.T) {
	for _, tt := range []struct {
		text string
		dies int // at which passing of after-write, 0 for never
		bad  bool
	}{
		{text: "after-write", dies: 1},
		{text: "after-write:3", dies: 3},
		{text: "after-journal", dies: 0},
		{text: "after-write:0", bad: true},
		{text: "after-write:", bad: true},
		{text: "after-lunch", bad: true},
	} {
		t.Run(tt.text, func(t *testing.T) {
			died := 0
			visit, err := crashPoint(tt.text, func() { died++ })
			if (err != nil) != tt.bad {
				t.Fatal(err)
			}
			if tt.bad {
				return
			}
			for n := 1; n <= 5; n++ {
				was := died
				visit(journal.StepAfterWrite)
				if (died > was) != (n == tt.dies) {
					t.Errorf("after passing it %d times it has died %d times", n, died)
				}
			}
		})
	}
}
