package main

import (
	crypto "crypto/rand"
	"encoding/hex"
	"math/rand/v2"
)

// newDraws returns the source that nodes are drawn from, with a seed that nobody
// can foresee, and that seed: with it and the samples a run's draws can be made
// again.
func newDraws() (source *rand.Rand, seed string) {
	var s [32]byte
	crypto.Read(s[:]) // never fails
	return rand.New(rand.NewChaCha8(s)), hex.EncodeToString(s[:])
}
