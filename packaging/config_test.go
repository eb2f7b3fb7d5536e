package packaging_test

import (
	"strings"
	"testing"

	"github.com/memagent/memagent/config"
)

// Whoever installs memagent has it watch; acting is a step of its own.
func TestWhatIsInstalledObserves(t *testing.T) {
	for _, file := range []string{"memagent.yaml", "kubernetes/base/memagent.yaml"} {
		c, err := config.Load(file)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if c.Mode != config.Observe {
			t.Errorf("%s: mode %v", file, c.Mode)
		}
		if c.StateDir != "/var/lib/memagent" {
			t.Errorf("%s: state_dir %s, and the unit, the manifests and the scripts have /var/lib/memagent", file, c.StateDir)
		}
	}
}

// The socket that the packages open is the one that is in the config as a
// suggestion.
func TestThePackagedConfigCanBeToldToOpenTheStatusSocket(t *testing.T) {
	if !strings.Contains(read(t, "memagent.yaml"), "\n  # status: /run/memagent/status.sock\n") {
		t.Error("scripts/packages looks for the commented key telemetry.status and would not find it")
	}
}

func TestTheProbesOfTheManifestsAskWhereTheConfigListens(t *testing.T) {
	c, err := config.Load("kubernetes/base/memagent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(c.Telemetry.Metrics.String(), ":")
	if port == "" || !strings.Contains(read(t, "kubernetes/base/daemonset.yaml"), "containerPort: "+port+"}") {
		t.Errorf("the config listens on %q, and the DaemonSet has another port", c.Telemetry.Metrics)
	}
}
