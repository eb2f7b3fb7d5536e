package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/memagent/memagent/telemetry"
)

// configState collects how the config stands.
type configState struct {
	get func() telemetry.ConfigState
}

var (
	goodDesc  = prometheus.NewDesc("memagent_config_good", "1 where what the config says is in force, 0 where it was refused and the one before stays.", nil, nil)
	takenDesc = prometheus.NewDesc("memagent_config_taken_timestamp_seconds", "When the config in force was taken, in seconds since 1970.", nil, nil)
	loadsDesc = prometheus.NewDesc("memagent_config_loads_total", "Times that something new was read in the config, by what became of it.", []string{"result"}, nil)
)

// Describe sends the descriptions of the series.
func (c *configState) Describe(ch chan<- *prometheus.Desc) {
	ch <- goodDesc
	ch <- takenDesc
	ch <- loadsDesc
}

// Collect sends the figures as they are now.
func (c *configState) Collect(ch chan<- prometheus.Metric) {
	s := c.get()
	ch <- prometheus.MustNewConstMetric(goodDesc, prometheus.GaugeValue, oneIf(s.Err == nil))
	ch <- prometheus.MustNewConstMetric(takenDesc, prometheus.GaugeValue, seconds(s.Since))
	ch <- prometheus.MustNewConstMetric(loadsDesc, prometheus.CounterValue, float64(s.Taken), "taken")
	ch <- prometheus.MustNewConstMetric(loadsDesc, prometheus.CounterValue, float64(s.Refused), "refused")
}
