package config

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// An empty message means that the text is taken; otherwise the error must
// contain it.
func check[V comparable](t *testing.T, text string, got V, err error, want V, message string) {
	t.Helper()
	switch {
	case message == "" && err != nil:
		t.Errorf("%q: refused: %v", text, err)
	case message == "" && got != want:
		t.Errorf("%q: got %v, want %v", text, got, want)
	case message != "" && err == nil:
		t.Errorf("%q: taken as %v", text, got)
	case message != "" && !strings.Contains(err.Error(), message):
		t.Errorf("%q: got message %q, want %q", text, err, message)
	case message != "" && !errors.Is(err, ErrValue):
		t.Errorf("%q: %v is no ErrValue", text, err)
	}
}

var sizeTable = []struct {
	text    string
	want    Bytes
	message string
}{
	{"0", 0, ""},
	{"1B", 1, ""},
	{"0B", 0, ""},
	{"4096B", 4096, ""},
	{"64KiB", 64 << 10, ""},
	{"256MiB", 256 << 20, ""},
	{"1.5GiB", 3 << 29, ""},
	{"0.125KiB", 128, ""},
	{"2TiB", 2 << 40, ""},
	{"8388607TiB", 8388607 << 40, ""},
	{"9223372036854771711B", MaxBytes, ""},
	{"9223372036854771712B", 0, "larger than any memory"}, // 2^63-4096: no limit to the kernel
	{"8388608TiB", 0, "larger than any memory"},
	{"99999999999999999999B", 0, "larger than any memory"},
	{"8388607.999TiB", 0, "not a whole number"},
	{"256", 0, "no unit"},
	{"1", 0, "no unit"},
	{"", 0, "not a number"},
	{"-1MiB", 0, "not a number"},
	{"+1MiB", 0, "not a number"},
	{".5MiB", 0, "not a number"},
	{"1.MiB", 0, "not a number"},
	{"01MiB", 0, "not a number"},
	{"MiB", 0, "not a number"},
	{"max", 0, "not a number"},
	{"inf", 0, "not a number"},
	{"0x10MiB", 0, "unknown unit"},
	{"1e3MiB", 0, "unknown unit"},
	{"1_000MiB", 0, "unknown unit"},
	{"256 MiB", 0, "unknown unit"},
	{"256MiB ", 0, "unknown unit"},
	{"256MB", 0, "write 256MiB"},
	{"256M", 0, "write 256MiB"},
	{"256m", 0, "write 256MiB"},
	{"4gb", 0, "write 4GiB"},
	{"256mib", 0, "unknown unit"},
	{"256b", 0, "unknown unit"},
	{"1PiB", 0, "unknown unit"},
	{"10%", 0, "is a percentage"},
	{"0.1GiB", 0, "not a whole number"},
	{"0.0001GiB", 0, "three decimals"},
	{"1\u00a0MiB", 0, `"1\u00a0MiB"`},
}

func TestSizesAreTakenOnlyWhenTheyAreClear(t *testing.T) {
	for _, c := range sizeTable {
		got, err := ParseBytes(c.text)
		check(t, c.text, got, err, c.want, c.message)
	}
}

func TestRatesNeedTheirTime(t *testing.T) {
	for _, c := range []struct {
		text    string
		want    Rate
		message string
	}{
		{"0", 0, ""},
		{"4MiB/s", 4 << 20, ""},
		{"1.5KiB/s", 1536, ""},
		{"4MiB", 0, "does not say /s"},
		{"4MB/s", 0, "write 4MiB/s"},
		{"4MiB/min", 0, "does not say /s"},
		{"4MiBps", 0, "does not say /s"},
		{"4", 0, "no unit"},
		{"4/s", 0, "unknown unit"},
		{"/s", 0, "not a number"},
		{"-4MiB/s", 0, "not a number"},
		{"20%", 0, "is a percentage"},
	} {
		got, err := ParseRate(c.text)
		check(t, c.text, got, err, c.want, c.message)
	}
}

func TestSharesNeedTheirSign(t *testing.T) {
	for _, c := range []struct {
		text    string
		want    Percent
		message string
	}{
		{"0", 0, ""},
		{"0%", 0, ""},
		{"10%", 0.1, ""},
		{"0.5%", 0.005, ""},
		{"0.1%", 0.001, ""},
		{"33.333333%", 0.33333333, ""},
		{"100%", 1, ""},
		{"100.0%", 1, ""},
		{"100.000001%", 0, "more than the whole"},
		{"101%", 0, "more than the whole"},
		{"0.0000001%", 0, "six decimals"},
		{"10", 0, "no % sign"},
		{"0.1", 0, "no % sign"},
		{"1", 0, "no % sign"},
		{"-1%", 0, "not a percentage"},
		{"10 %", 0, "not a percentage"},
		{"10%%", 0, "not a percentage"},
		{"%", 0, "not a percentage"},
		{"NaN%", 0, "not a percentage"},
		{"1e1%", 0, "not a percentage"},
		{"10percent", 0, "not a percentage"},
		{strings.Repeat("9", 400) + "%", 0, "more than the whole"},
	} {
		got, err := ParsePercent(c.text)
		check(t, c.text, got, err, c.want, c.message)
	}
}

func TestDurationsNeedTheirUnit(t *testing.T) {
	for _, c := range []struct {
		text    string
		want    time.Duration
		message string
	}{
		{"0", 0, ""},
		{"5s", 5 * time.Second, ""},
		{"1m30s", 90 * time.Second, ""},
		{"1.5h", 90 * time.Minute, ""},
		{"500ms", 500 * time.Millisecond, ""},
		{"5", 0, "no unit"},
		{"1.5", 0, "no unit"},
		{"-5s", 0, "not a duration"},
		{"+5s", 0, "not a duration"},
		{".5s", 0, "not a duration"},
		{"5 s", 0, "not a duration"},
		{"5sec", 0, "not a duration"},
		{"2d", 0, "not a duration"},
		{"1m-5s", 0, "not a duration"},
		{"99999999999h", 0, "not a duration"},
		{"", 0, "not a duration"},
	} {
		got, err := ParseDuration(c.text)
		check(t, c.text, got, err, c.want, c.message)
	}
}

func TestAmountsAreSharesOrSizes(t *testing.T) {
	parse := parseAmount(MaxHeadroom)
	for _, c := range []struct {
		text    string
		want    Amount
		message string
	}{
		{"0", BytesOf(0), ""},
		{"2%", ShareOf(0.02), ""},
		{"50%", ShareOf(0.5), ""},
		{"64MiB", BytesOf(64 << 20), ""},
		{"51%", Amount{}, "above 50%"},
		{"101%", Amount{}, "more than the whole"},
		{"5", Amount{}, "no unit"},
		{"4G", Amount{}, "write 4GiB"},
		{"none", Amount{}, "not a number"},
	} {
		got, err := parse(c.text)
		check(t, c.text, got, err, c.want, c.message)
	}
}

func TestAnAmountIsNeverMoreThanTheWhole(t *testing.T) {
	for _, c := range []struct {
		amount Amount
		total  uint64
		want   uint64
		ok     bool
	}{
		{Amount{}, 100, 0, false},
		{ShareOf(0), 100, 0, true},
		{ShareOf(0.02), 1000, 20, true},
		{ShareOf(1), math.MaxUint64, math.MaxUint64, true},
		{ShareOf(Percent(math.NaN())), 100, 0, true},
		{ShareOf(-1), 100, 0, true},
		{BytesOf(64), 100, 64, true},
		{BytesOf(200), 100, 100, true},
		{BytesOf(0), 100, 0, true},
	} {
		if got, ok := c.amount.Of(c.total); got != c.want || ok != c.ok {
			t.Errorf("%v of %d: got %d, %v, want %d, %v", c.amount, c.total, got, ok, c.want, c.ok)
		}
	}
}

func TestUnitsSurviveAWayThroughText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Bytes(rapid.Uint64Range(0, uint64(MaxBytes)).Draw(t, "bytes"))
		if got, err := ParseBytes(b.String()); err != nil || got != b {
			t.Errorf("%d became %s and %d: %v", b, b, got, err)
		}
		if got, err := ParseRate(Rate(b).String()); err != nil || got != Rate(b) {
			t.Errorf("%d/s became %v and %d: %v", b, Rate(b), got, err)
		}
		p := drawPercent(t, 0, 1)
		if got, err := ParsePercent(p.String()); err != nil || got != p {
			t.Errorf("%v became %s and %v: %v", float64(p), p, float64(got), err)
		}
		d := time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "duration"))
		if got, err := ParseDuration(formatDuration(d)); err != nil || got != d {
			t.Errorf("%d became %s and %d: %v", d, formatDuration(d), got, err)
		}
	})
}
