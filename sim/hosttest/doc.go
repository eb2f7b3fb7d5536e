// Package hosttest is one conformance suite for everything that stands behind
// the controller's seam. The simulated host runs it in its tests, the real one
// in a guest; what one of them answers differently is a fault in one of them.
package hosttest
