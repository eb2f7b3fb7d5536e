package controller

import (
	"context"
	"time"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/telemetry"
)

// Config is what a Loop is to decide by from now on.
type Config struct {
	Config *config.Config
	Mode   telemetry.Mode
	// Took, where it is not nil, is told what that changed, from the goroutine
	// of Run.
	Took func(Reconfigured)
}

// reconfigure takes another config in and looks at once: policies may match
// other cgroups now.
func (l *Loop) reconfigure(workCtx context.Context, next Config, now time.Time) {
	changed := l.Core.Reconfigure(next.Config, next.Mode, now)
	l.Interval = next.Config.Interval
	if next.Took != nil {
		next.Took(changed)
	}
	for _, id := range changed.Released {
		l.Host.Forget(id)
		l.Sink.Record(lastRecord(id, now, telemetry.ErrUnwatched))
	}
	l.tick(workCtx, now, true, workers-l.running)
}
