//go:build !crashpoints

package main

import "github.com/memagent/memagent/journal"

// journalOptions are those of every build but the lab's: none.
func journalOptions() ([]journal.Option, error) { return nil, nil }
