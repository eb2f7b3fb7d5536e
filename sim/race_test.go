//go:build race

package sim_test

// raceDetector: tests run under it, some thirty times slower.
const raceDetector = true
