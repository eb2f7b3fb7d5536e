package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/memagent/memagent/telemetry"
)

// predicted collects what policies that only observe would do. A policy that acts
// has no series.
type predicted struct{ *telemetry.Predictions }

func predictedDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("memagent_predicted_"+name, help, []string{"policy"}, nil)
}

var (
	predictedResident = predictedDesc("resident_bytes", "What the cgroups hold that a policy would act on and only observes; what the predictions are of.")
	predictedNext     = predictedDesc("next_bytes", "Prediction: bytes that a policy which only observes would ask for now.")
	predictedMost     = predictedDesc("most_bytes", "Prediction: bytes that would be out by now at most, had each wish been had in full and nothing come back.")
)

// Describe sends the descriptions of all series.
func (p *predicted) Describe(ch chan<- *prometheus.Desc) {
	ch <- predictedResident
	ch <- predictedNext
	ch <- predictedMost
}

// Collect sends the predictions as they are now. Of policies beyond the bound of
// the label there is one sum.
func (p *predicted) Collect(ch chan<- prometheus.Metric) {
	all := p.ByPolicy()
	if len(all) > maxPolicies {
		rest := telemetry.Total(all[maxPolicies-1:])
		rest.Policy = other
		all = append(all[:maxPolicies-1], rest)
	}
	for i := range all {
		one := &all[i]
		for desc, v := range map[*prometheus.Desc]uint64{predictedResident: one.Resident, predictedNext: one.Next, predictedMost: one.Most} {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(v), one.Policy)
		}
	}
}
