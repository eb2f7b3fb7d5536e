package controller

import (
	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/workingset"
)

// lawPolicy says what the operator configured in the terms of the law.
func lawPolicy(cfg *config.Config, p *config.Policy) workingset.Policy {
	return workingset.Policy{
		Law: laws[p.Law],
		Swappiness: workingset.Swappiness{
			Kind:  swappinessKinds[p.Swappiness.Kind],
			Value: p.Swappiness.Value,
			Base:  p.Swappiness.Base,
			Min:   p.Swappiness.Min,
			Max:   p.Swappiness.Max,
		},
		Squeeze: workingset.Squeeze{
			On:             !p.Squeeze.Off,
			MaxStep:        float64(p.Squeeze.MaxStep),
			PressureTarget: float64(p.Squeeze.PressureTarget),
			CostTarget:     float64(p.Squeeze.CostTarget),
			Floor:          uint64(p.Squeeze.Floor),
			IdleAge:        p.Squeeze.IdleAge,
		},
		Headroom: workingset.Headroom{
			On:       p.Headroom.Kind != config.AmountUnset,
			Fraction: float64(p.Headroom.Share),
			Bytes:    uint64(p.Headroom.Bytes),
		},
		SwapGuard:    p.SwapGuard,
		SwapKeepFree: float64(cfg.Host.Swap.KeepFree),
	}
}

var laws = map[config.Law]workingset.Law{
	config.LawMemagent: workingset.Memagent,
	config.LawTMO:      workingset.TMO,
	config.LawSenpai:   workingset.Senpai,
}

var swappinessKinds = map[config.SwappinessKind]workingset.SwappinessKind{
	config.SwappinessKernel: workingset.Kernel,
	config.SwappinessFixed:  workingset.Fixed,
	config.SwappinessAuto:   workingset.Auto,
}
