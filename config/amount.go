package config

// AmountKind tells how an Amount is given.
type AmountKind uint8

// Kinds of amounts.
const (
	// AmountUnset means the operator said nothing, which is not an amount of 0.
	AmountUnset AmountKind = iota
	// AmountShare means a share of whatever the amount is taken of.
	AmountShare
	// AmountBytes means a size.
	AmountBytes
)

// Amount is a size that is given as such or as a share of another size. The
// zero Amount is unset.
type Amount struct {
	Kind  AmountKind
	Share Percent // where Kind is AmountShare
	Bytes Bytes   // where Kind is AmountBytes
}

// ShareOf returns the amount that is a share.
func ShareOf(p Percent) Amount { return Amount{Kind: AmountShare, Share: p} }

// BytesOf returns the amount that is a fixed size.
func BytesOf(b Bytes) Amount { return Amount{Kind: AmountBytes, Bytes: b} }

// Of returns the amount in bytes, of a total in bytes and at most that total;
// ok is false when it is unset.
func (a Amount) Of(total uint64) (bytes uint64, ok bool) {
	switch a.Kind {
	case AmountShare:
		return a.Share.Of(total), true
	case AmountBytes:
		return min(uint64(a.Bytes), total), true
	}
	return 0, false
}

// String returns the amount as a config file takes it, "" when unset.
func (a Amount) String() string {
	switch a.Kind {
	case AmountShare:
		return a.Share.String()
	case AmountBytes:
		return a.Bytes.String()
	}
	return ""
}

// parseAmount reads a percentage up to most, or a size.
func parseAmount(most Percent) func(string) (Amount, error) {
	return func(text string) (Amount, error) {
		number, suffix := splitNumber(text)
		if text != "0" && number != "" && suffix == "" {
			return Amount{}, faultf(ErrValue, "%s has no unit", text)
		}
		if suffix != "%" {
			b, err := ParseBytes(text)
			return BytesOf(b), err
		}
		p, err := ParsePercent(text)
		if err == nil && p > most {
			err = faultf(ErrValue, "%s is above %v", text, most)
		}
		return ShareOf(p), err
	}
}
