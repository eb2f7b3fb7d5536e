package workingset

import (
	"testing"
	"time"
)

func TestACooldownGoesOnInANewState(t *testing.T) {
	for _, c := range []struct {
		name                 string
		kind                 IntentKind
		left, length         time.Duration
		wantLeft, wantLength time.Duration
		next                 time.Duration // of the one after it
	}{
		{"half over", KindMoveAnon, 2 * time.Minute, 4 * time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute},
		{"the longest", KindMoveFile, 20 * time.Minute, lastCool, 20 * time.Minute, 20 * time.Minute, lastCool},
		{"longer than there are", KindMoveAnon, 24 * time.Hour, 24 * time.Hour, lastCool, lastCool, lastCool},
		{"shorter than there are", KindMoveAnon, time.Second, time.Second, time.Second, time.Minute, 2 * time.Minute},
		{"over", KindMoveAnon, 0, time.Minute, 0, 0, 0},
		{"of nothing that moves", KindHeadroom, time.Minute, time.Minute, 0, 0, 0},
	} {
		var st State
		st.Cool(c.kind, c.left, c.length)
		kind, left, length := st.Cooling()
		if left != c.wantLeft || length != c.wantLength || left > 0 && kind != c.kind {
			t.Errorf("%s: %v for %v of %v, want %v of %v", c.name, kind, left, length, c.wantLeft, c.wantLength)
		}
		if st.episode.nextCool != c.next {
			t.Errorf("%s: the next one is %v, want %v", c.name, st.episode.nextCool, c.next)
		}
	}
}
