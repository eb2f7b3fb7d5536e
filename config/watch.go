package config

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long files must have been left alone before they count as
// changed: an editor or a package manager writes several in a moment, and some
// of them in two steps.
const settle = 300 * time.Millisecond

// Watch returns a channel that is signalled some time after anything changed in
// the folders where the config at path and its drop-ins are, or where they link
// to. It says too much rather than too little, and never blocks: Reload tells
// whether there is anything new. The channel is closed when ctx ends. An error
// means that nothing will be heard: read again on request only.
func Watch(ctx context.Context, path string) (<-chan struct{}, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watching %s for changes: %w", path, err)
	}
	if err := w.Add(filepath.Dir(path)); err != nil {
		w.Close()
		return nil, fmt.Errorf("watching the folder of %s for changes: %w", path, err)
	}
	follow(w, path)
	changed := make(chan struct{}, 1)
	go func() {
		defer close(changed)
		defer w.Close()
		quiet := time.NewTimer(time.Hour)
		quiet.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case _, ok := <-w.Events:
				if !ok {
					return
				}
				quiet.Reset(settle)
			case _, ok := <-w.Errors: // events were lost: look
				if !ok {
					return
				}
				quiet.Reset(settle)
			case <-quiet.C:
				follow(w, path) // the folder of drop-ins, or a link, may be new
				select {
				case changed <- struct{}{}:
				default:
				}
			}
		}
	}()
	return changed, nil
}

// follow watches what may have come into being since: the folder of drop-ins and
// the folders that links lead to. What is watched already stays so.
func follow(w *fsnotify.Watcher, path string) {
	dir := DropInDir(path)
	_ = w.Add(dir) // not there: the folder around it tells when it is
	names, _ := dropIns(dir)
	for _, name := range append(names, path) {
		if target, err := filepath.EvalSymlinks(name); err == nil {
			_ = w.Add(filepath.Dir(target))
		}
	}
}
