// Package top shows the answers of a running memagent as a table: once, for a
// pipe or a file, or live on a terminal of 20 columns or more.
//
// What is shown is a pure function of a status.Status, of a view (order, what
// is scrolled to, whether by node) and of a size; the terminal's program around
// it only asks, waits for keys and prints. A table gives up columns before it
// gives up the cgroup's name, the least telling first, and shortens a path at
// its front, since the end is what tells one from another.
package top
