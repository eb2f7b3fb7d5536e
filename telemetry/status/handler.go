package status

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/memagent/memagent/telemetry"
)

// atOnce is how many answers are made at the same time: one over ten thousand
// cgroups takes some megabytes.
const atOnce = 4

// Handler answers questions to a board. A question beyond those that are
// answered at the same time is refused with 503 rather than kept waiting.
func Handler(b *Board, health *telemetry.Health) http.Handler {
	mux := http.NewServeMux()
	free := make(chan struct{}, atOnce)
	limited := func(h http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			select {
			case free <- struct{}{}:
				defer func() { <-free }()
				h(w, r)
			default:
				answer(w, http.StatusServiceUnavailable, Failure{Error: fmt.Sprintf("%d others are being answered; ask again", atOnce)})
			}
		}
	}
	mux.HandleFunc("GET /v1/status", limited(func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, b.Status(time.Now()))
	}))
	mux.HandleFunc("GET /v1/cgroups/{path...}", limited(func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("path")
		d, near, ok := b.Detail(name, time.Now())
		if !ok {
			answer(w, http.StatusNotFound, Failure{Error: fmt.Sprintf("no policy watches a cgroup %s", telemetry.Name(name)), Near: near})
			return
		}
		answer(w, http.StatusOK, d)
	}))
	HandleHealth(mux, health)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusNotFound, Failure{Error: fmt.Sprintf("%s %s is not answered here; version %d has /v1/status and /v1/cgroups/PATH", r.Method, r.URL.Path, Version)})
	})
	return mux
}

// HandleHealth adds /healthz and /readyz to a mux: 200 and "ok", or 503 and
// the reason.
func HandleHealth(mux *http.ServeMux, health *telemetry.Health) {
	say := func(check func() error) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			if err := check(); err != nil {
				w.WriteHeader(http.StatusServiceUnavailable)
				fmt.Fprintln(w, err)
				return
			}
			fmt.Fprintln(w, "ok")
		}
	}
	mux.HandleFunc("GET /healthz", say(func() error { return health.Alive(time.Now()) }))
	mux.HandleFunc("GET /readyz", say(health.Ready))
}

// answer writes a body as JSON. That a client is gone is its own affair.
func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
