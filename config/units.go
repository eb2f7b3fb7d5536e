package config

import (
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Bytes is a size. In a file: 0, or a number with one of B, KiB, MiB, GiB, TiB.
type Bytes uint64

// MaxBytes is the largest size that is taken: from 2^63-4096 on the kernel
// means "no limit".
const MaxBytes Bytes = 1<<63 - 4097

// Rate is a speed in bytes per second. In a file: 0, or a size with /s.
type Rate uint64

// Percent is a share as a fraction: 10% is 0.1. In a file: 0, or a number from
// 0 to 100 with at most six decimals and the sign.
type Percent float64

// maxDecimals keeps percentages within the 15 digits that survive a way
// through float64 and back.
const maxDecimals = 6

var byteUnits = []struct {
	suffix string
	size   uint64
}{ // largest first: String takes the first that divides
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1},
}

// ParseBytes reads a size. The number may have up to three decimals if that
// gives whole bytes. Suffixes other than those of Bytes are refused: M and MB
// are powers of ten to some programs and powers of two to others. A refusal
// wraps ErrValue.
func ParseBytes(text string) (Bytes, error) { return parseSize(text, "") }

// parseSize reads a size that has per, "" or "/s", behind its unit.
func parseSize(text, per string) (Bytes, error) {
	number, suffix := splitNumber(text)
	unit, found := strings.CutSuffix(suffix, per)
	switch {
	case text == "0":
		return 0, nil
	case number == "":
		return 0, faultf(ErrValue, "%s is not a number with a unit", quote(text))
	case suffix == "":
		return 0, faultf(ErrValue, "%s has no unit", quote(text))
	case suffix == "%":
		return 0, faultf(ErrValue, "%s is a percentage", quote(text))
	case !found:
		return 0, faultf(ErrValue, "%s does not say %s", quote(text), per)
	}
	for _, u := range byteUnits {
		if u.suffix == unit {
			return scaleBytes(text, number, u.size)
		}
	}
	for _, u := range byteUnits[:4] {
		if strings.EqualFold(unit, u.suffix[:1]) || strings.EqualFold(unit, u.suffix[:1]+"B") {
			return 0, faultf(ErrValue, "%s is ambiguous, %s is a power of ten to some and of two to others: write %s%s%s",
				quote(text), unit, shorten(number), u.suffix, per)
		}
	}
	return 0, faultf(ErrValue, "%s has an unknown unit", quote(text))
}

func scaleBytes(text, number string, unit uint64) (Bytes, error) {
	tooLarge := faultf(ErrValue, "%s is larger than any memory", quote(text))
	whole, decimals, _ := strings.Cut(number, ".")
	n, err := strconv.ParseUint(whole, 10, 64)
	high, low := bits.Mul64(n, unit)
	if err != nil || high != 0 || low > uint64(MaxBytes) {
		return 0, tooLarge
	}
	if len(decimals) > 3 {
		return 0, faultf(ErrValue, "%s has more than three decimals", quote(text))
	}
	var part uint64
	scale := uint64(1)
	for _, digit := range decimals {
		part = 10*part + uint64(digit-'0')*unit // < 1000 TiB
		scale *= 10
	}
	if part%scale != 0 {
		return 0, faultf(ErrValue, "%s is not a whole number of bytes", quote(text))
	}
	if low += part / scale; low > uint64(MaxBytes) {
		return 0, tooLarge
	}
	return Bytes(low), nil
}

// String returns the size with the largest unit that divides it, as ParseBytes
// takes it.
func (b Bytes) String() string {
	if b == 0 {
		return "0"
	}
	for _, u := range byteUnits {
		if uint64(b)%u.size == 0 {
			return strconv.FormatUint(uint64(b)/u.size, 10) + u.suffix
		}
	}
	return "" // not reached: every size is a multiple of 1 B
}

// ParseRate reads a speed. A refusal wraps ErrValue.
func ParseRate(text string) (Rate, error) {
	b, err := parseSize(text, "/s")
	return Rate(b), err
}

// String returns the rate as ParseRate takes it.
func (r Rate) String() string {
	if r == 0 {
		return "0"
	}
	return Bytes(r).String() + "/s"
}

// ParsePercent reads a share. A refusal wraps ErrValue.
func ParsePercent(text string) (Percent, error) {
	if text == "0" {
		return 0, nil
	}
	number, suffix := splitNumber(text)
	switch {
	case number == "" || suffix != "" && suffix != "%":
		return 0, faultf(ErrValue, "%s is not a percentage", quote(text))
	case suffix == "":
		return 0, faultf(ErrValue, "%s has no %% sign", quote(text))
	}
	if _, decimals, _ := strings.Cut(number, "."); len(decimals) > maxDecimals {
		return 0, faultf(ErrValue, "%s has more than six decimals", quote(text))
	}
	// The shift by two decimals is left to the decimal reader: a division
	// would not round as the number that was written does.
	p, err := strconv.ParseFloat(number+"e-2", 64)
	if err != nil || p > 1 {
		return 0, faultf(ErrValue, "%s is more than the whole", quote(text))
	}
	return Percent(p), nil
}

// String returns the share as ParsePercent takes it.
func (p Percent) String() string {
	if p == 0 {
		return "0%"
	}
	s := strconv.FormatFloat(float64(p)*100, 'f', maxDecimals, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") + "%"
}

// Of returns the share of a size, rounded down.
func (p Percent) Of(total uint64) uint64 {
	share := float64(p) * float64(total)
	switch {
	case !(share > 0): // also NaN
		return 0
	case share >= float64(total):
		return total
	}
	return uint64(share)
}

// ParseDuration reads a span of time: 0, or Go's form ("5s", "1m30s") without
// a sign. A refusal wraps ErrValue.
func ParseDuration(text string) (time.Duration, error) {
	if text == "0" {
		return 0, nil
	}
	number, suffix := splitNumber(text)
	if number != "" && suffix == "" {
		return 0, faultf(ErrValue, "%s has no unit", quote(text))
	}
	d, err := time.ParseDuration(text)
	if number == "" || err != nil {
		return 0, faultf(ErrValue, "%s is not a duration", quote(text))
	}
	return d, nil
}

// formatDuration leaves out the zero parts that time.Duration prints: 1m, not
// 1m0s.
func formatDuration(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// splitNumber cuts text behind its leading decimal number. number is empty
// unless text starts with a number as people write it: digits, and behind a
// point at least one more; no sign, no exponent, no zeros in front.
func splitNumber(text string) (number, rest string) {
	i := digits(text)
	if i == 0 || i > 1 && text[0] == '0' {
		return "", text
	}
	if i < len(text) && text[i] == '.' {
		d := digits(text[i+1:])
		if d == 0 {
			return "", text
		}
		i += 1 + d
	}
	return text[:i], text[i:]
}

func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}

// quote sets off text that is not plainly one word, so that a message never
// shows an invisible value.
func quote(text string) string {
	text = shorten(text)
	for _, r := range text {
		if r <= ' ' || r == '"' || !strconv.IsPrint(r) {
			return strconv.Quote(text)
		}
	}
	if text == "" {
		return `""`
	}
	return text
}

// shorten cuts what is too long for a line of a message.
func shorten(text string) string {
	const longest = 80 // characters
	if r := []rune(text); len(r) > longest {
		return string(r[:longest]) + "..."
	}
	return text
}
