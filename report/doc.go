// Package report draws what a recording holds as one HTML page: for each cgroup
// what it held by type and by node, what refaults cost it, pressure, swap, what
// was lent, and every action.
//
// The page is one file that loads nothing: plots are SVG made here, with little
// script to read values under the pointer, and none is needed to see them. It
// fits a phone, prints, and follows the reader's choice of light or dark.
//
// A Page is fed with samples and decisions in their order, from a replay. It
// keeps means and sums of a fixed number of spans of time, which become longer
// as the recording goes on, so a day costs no more memory than an hour. How many
// cgroups are drawn is bounded; a Survey of the recording tells which matter
// most, and the page says how many are left out.
package report
