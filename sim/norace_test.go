//go:build !race

package sim_test

// raceDetector: tests do not run under it.
const raceDetector = false
