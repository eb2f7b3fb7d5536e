package scenario

import (
	"testing"
	"time"

	"github.com/memagent/memagent/lab/guest"
)

func TestTableSaysWhatWasAskedAndWhatCameOfIt(t *testing.T) {
	start := time.Unix(1000, 0)
	got := table([]guest.Decision{
		decision(t, start.Add(-time.Second), `{"message":"decision","verdict":"fits","rule":"squeeze-off"}`),
		decision(t, start.Add(1500*time.Millisecond), `{"message":"decision","verdict":"file-thrash","rule":"move-anon","want":1048576,"swappiness":"200","acted":true}`),
		decision(t, start.Add(2*time.Second), `{"message":"decision","verdict":"file-thrash","rule":"move-anon","want":4096,"swappiness":"200","held":"busy","outcome":{"reclaimed":1048576,"swapout":524288,"took_us":20000}}`),
	}, start)
	want := `  -1.00s fits/squeeze-off
   1.50s file-thrash/move-anon want 1024 KiB swappiness 200 acted true
   2.00s file-thrash/move-anon want 4 KiB swappiness 200 acted false held: busy | took 1024 KiB in 20 ms, 512 to swap
`
	if got != want {
		t.Errorf("got:\n%s", got)
	}
}

func decision(t *testing.T, at time.Time, line string) guest.Decision {
	t.Helper()
	d, _ := guest.ParseAgentLine([]byte(line))
	if d == nil {
		t.Fatalf("no decision: %s", line)
	}
	d.Heard = at
	return *d
}
