package protocol

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/lab/result"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	sent := []Message{
		{Hello: &Hello{Release: "6.12", LRU: "mglru", UptimeMS: 2300}},
		{Log: "two\nlines"},
		{Output: &Output{Stream: 2, Data: []byte("\x00\xff\n")}},
		{Run: &result.Run{Agent: "on", PassMS: []float64{1.5}, Facts: map[string]float64{"cold_bytes": 4096}}},
		{Done: &Done{Error: "it broke", Code: 3}},
	}
	var b bytes.Buffer
	for _, m := range sent {
		if err := Write(&b, m); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(b.String(), "\n"); n != len(sent) {
		t.Errorf("%d lines for %d messages", n, len(sent))
	}
	var got []Message
	if err := Read(&b, func(m Message) error { got = append(got, m); return nil }); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(sent, got); d != "" {
		t.Error(d)
	}
}

func TestReadHandsOnWhatIsNoMessage(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"a line of firmware becomes a log", "SeaBIOS\n{\"log\":\"x\"}\n", []string{"not a message: SeaBIOS", "x"}},
		{"carriage returns and empty lines do not matter", "\r\n{\"log\":\"x\"}\r\n\n", []string{"x"}},
		{"a last line without an end counts", `{"log":"x"}`, []string{"x"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			if err := Read(strings.NewReader(tc.text), func(m Message) error { got = append(got, m.Log); return nil }); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestReadStopsWhenItsCallerDoes(t *testing.T) {
	stop := errors.New("enough")
	n := 0
	err := Read(strings.NewReader("{}\n{}\n{}\n"), func(Message) error { n++; return stop })
	if !errors.Is(err, stop) || n != 1 {
		t.Errorf("%v after %d messages", err, n)
	}
}
