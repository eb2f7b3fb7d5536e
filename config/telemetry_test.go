package config

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func TestAnAddressIsASocketOrAHostAndAPort(t *testing.T) {
	for text, want := range map[string]struct {
		address Address
		remote  bool
	}{
		"unix:/run/memagent/m.sock": {Address{"unix", "/run/memagent/m.sock"}, false},
		"127.0.0.1:9750":            {Address{"tcp", "127.0.0.1:9750"}, false},
		"127.8.0.1:1":               {Address{"tcp", "127.8.0.1:1"}, false},
		"[::1]:9750":                {Address{"tcp", "[::1]:9750"}, false},
		"localhost:9750":            {Address{"tcp", "localhost:9750"}, false},
		":9750":                     {Address{"tcp", ":9750"}, true},
		"0.0.0.0:9750":              {Address{"tcp", "0.0.0.0:9750"}, true},
		"[::]:65535":                {Address{"tcp", "[::]:65535"}, true},
		"10.0.0.1:9750":             {Address{"tcp", "10.0.0.1:9750"}, true},
	} {
		got, err := ParseAddress(text)
		if err != nil || got != want.address || got.Remote() != want.remote || got.String() != text {
			t.Errorf("%s: %+v, remote %v, %q, %v", text, got, got.Remote(), got.String(), err)
		}
	}
	for _, text := range []string{"", "unix:", "unix:run/x", "unix:/x", "unix:/run/../x/y", "unix:/proc/1/x", "/run/memagent/m.sock",
		"9750", "localhost", "host.example:9750", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:http", "::1:9750", "http://127.0.0.1:9750"} {
		if got, err := ParseAddress(text); !errors.Is(err, ErrBadConfig) && err == nil {
			t.Errorf("%q is taken as %+v", text, got)
		}
	}
}

func drawTelemetry(t *rapid.T) (v Telemetry) {
	v.Metrics = rapid.SampledFrom([]Address{{}, {"unix", "/run/m/metrics.sock"}, {"tcp", "127.0.0.1:9750"}, {"tcp", "[::1]:1"}, {"tcp", ":9750"}}).Draw(t, "metrics")
	v.Status = rapid.SampledFrom([]string{"", "/run/m/status.sock", "/run/m x/#status"}).Draw(t, "status")
	v.Remote = v.Metrics.Remote() || rapid.Bool().Draw(t, "remote")
	return v
}
