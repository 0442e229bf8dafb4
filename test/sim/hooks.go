// SPDX-License-Identifier: Apache-2.0

package sim

// Hooks is a swarm in which of three things that people do one is to hold a Machine by a hook, and one to delete one.
type Hooks struct{ *Swarm }

// Pick implements [Strategy].
func (s Hooks) Pick(p *Play, k Kind, n int) int {
	if k == KindUser {
		switch s.rng.IntN(3) {
		case 0:
			return userHook
		case 1:
			return userDelete
		}
	}
	return s.Swarm.Pick(p, k, n)
}

// Moves is a swarm in which one of three things that people do is to move a Machine from one set to the other.
type Moves struct{ *Swarm }

// Pick implements [Strategy].
func (s Moves) Pick(p *Play, k Kind, n int) int {
	if k == KindUser && s.rng.IntN(3) == 0 {
		return userMove
	}
	return s.Swarm.Pick(p, k, n)
}

// Shifts lets people do nothing but move Machines.
type Shifts struct{}

// Pick implements [Strategy].
func (Shifts) Pick(p *Play, k Kind, _ int) int {
	switch {
	case k == KindUser:
		return userMove
	case k == KindWhat && p.steps%20 == 0:
		return whatUser
	}
	return 0
}

// Holds lets people do nothing but hold Machines by hooks and delete them, in turn.
type Holds struct{}

// Pick implements [Strategy].
func (Holds) Pick(p *Play, k Kind, _ int) int {
	switch {
	case k == KindUser && p.steps%20 == 10:
		return userHook
	case k == KindUser:
		return userDelete
	case k == KindWhat && p.steps%10 == 0:
		return whatUser
	}
	return 0
}

// Unchecks is a swarm in which of three things that people do one is to take the check away, or to make it anew, and one that an
// instance vanishes.
type Unchecks struct{ *Swarm }

// Pick implements [Strategy].
func (s Unchecks) Pick(p *Play, k Kind, n int) int {
	if k == KindUser {
		switch s.rng.IntN(3) {
		case 0:
			return userCheck
		case 1:
			return userVanish
		}
	}
	return s.Swarm.Pick(p, k, n)
}

// Cycles is a swarm of much in which every other thing that people do is to have something power-cycled, and time passes until it is.
type Cycles struct{ *Swarm }

// NewCycles returns the strategy of one seed.
func NewCycles(seed uint64) Cycles {
	s := NewSwarm(seed)
	s.what[whatUser], s.what[whatTime], s.what[whatNature] = max(s.what[whatUser], 2), 3, 3
	return Cycles{s}
}

// Pick implements [Strategy].
func (s Cycles) Pick(p *Play, k Kind, n int) int {
	switch k {
	case KindBefore:
		return n - 1
	case KindTime:
		return s.rng.IntN(min(n, withinInvocation+2)) // what takes five minutes is over
	case KindUser:
		if s.rng.IntN(2) == 0 {
			return userCycle
		}
	default:
	}
	return s.Swarm.Pick(p, k, n)
}

// Unserves is a swarm of what falls ill in which of six things that people do two are to spoil what the set selects, or to mend it, and one
// to delete the set, or to let it go.
type Unserves struct{ Ails }

// Pick implements [Strategy].
func (s Unserves) Pick(p *Play, k Kind, n int) int {
	if k == KindUser {
		switch s.rng.IntN(6) {
		case 0, 1:
			return userUnserve
		case 2:
			return userSet
		}
	}
	return s.Ails.Pick(p, k, n)
}

// Losses is a swarm of much in which of four things that people do, or that happen to them, one is that the cloud loses many, and one that
// more are wanted.
type Losses struct{ Ails }

// Pick implements [Strategy].
func (s Losses) Pick(p *Play, k Kind, n int) int {
	if k == KindUser {
		switch s.rng.IntN(4) {
		case 0:
			return userLose
		case 1:
			return userScale
		}
	}
	return s.Ails.Pick(p, k, n)
}

// Keeps is a swarm of what falls ill in which a policy keeps something for most of the time, and people delete Machines,
// or scale.
type Keeps struct{ Ails }

// Pick implements [Strategy].
func (s Keeps) Pick(p *Play, k Kind, n int) int {
	if k == KindUser {
		switch at := s.rng.IntN(8); {
		case at < 3 && p.kept == nil, at == 0:
			return userKeep
		case at < 4:
			return userDelete
		case at < 6:
			return userScale
		}
	}
	return s.Ails.Pick(p, k, n)
}

// Spoils is a swarm in which of six things that people do two are to spoil the template, or to mend it, one to scale and one to delete a
// Machine.
type Spoils struct{ *Swarm }

// Pick implements [Strategy].
func (s Spoils) Pick(p *Play, k Kind, n int) int {
	if k == KindUser {
		if at := s.rng.IntN(6); at < 4 {
			return []int{userMendTemplate, userMendTemplate, userScale, userDelete}[at]
		}
	}
	return s.Swarm.Pick(p, k, n)
}

// Ails is a swarm in which there is much, and what there is falls ill.
type Ails struct{ *Swarm }

// NewAils returns the strategy of one seed.
func NewAils(seed uint64) Ails {
	s := NewSwarm(seed)
	s.ills, s.what[whatUser], s.what[whatTime] = true, max(s.what[whatUser], 3), max(s.what[whatTime], 1)
	return Ails{s}
}

// Pick implements [Strategy].
func (s Ails) Pick(p *Play, k Kind, n int) int {
	if k == KindBefore {
		return n - 1
	}
	return s.Swarm.Pick(p, k, n)
}

// Shorts is a swarm in which lists soon lack most of what there is, once there is much.
type Shorts struct{ *Swarm }

// Pick implements [Strategy].
func (s Shorts) Pick(p *Play, k Kind, n int) int {
	switch due := p.short.kind == "" && p.steps%20 == 19; {
	case k == KindBefore:
		return n - 1
	case due && k == KindWhat:
		return whatUser
	case due && k == KindUser:
		return userShort
	}
	return s.Swarm.Pick(p, k, n)
}

// Rivals is a swarm in which one of three things that people do is to delete a MachineAutoscaler of the set, or to make it anew.
type Rivals struct{ *Swarm }

// Pick implements [Strategy].
func (s Rivals) Pick(p *Play, k Kind, n int) int {
	if k == KindUser && s.rng.IntN(3) == 0 {
		return userRival
	}
	return s.Swarm.Pick(p, k, n)
}

// Empties is a swarm of much in which of four things that people do two are to delete a Machine, and one to want more Pods or fewer.
type Empties struct{ *Swarm }

// Pick implements [Strategy].
func (s Empties) Pick(p *Play, k Kind, n int) int {
	switch k {
	case KindBefore:
		return n - 1
	case KindUser:
		if at := s.rng.IntN(4); at < 3 {
			return []int{userDelete, userDelete, userLoad}[at]
		}
	default:
	}
	return s.Swarm.Pick(p, k, n)
}

// Uncheck lets people do nothing but take the check away, or a MachineAutoscaler of two, or make it anew.
type Uncheck struct{}

// Pick implements [Strategy].
func (Uncheck) Pick(p *Play, k Kind, _ int) int {
	switch {
	case k == KindUser:
		return userCheck
	case k == KindWhat && p.steps%80 == 0:
		return whatUser
	}
	return 0
}

// Plagues is a swarm of what falls ill in which people often delete Machines, or take away what a check has in flight. Where one of the
// control plane is out, it is often for long: time passes, and there is no room for another.
type Plagues struct{ Ails }

// Pick implements [Strategy].
func (s Plagues) Pick(p *Play, k Kind, n int) int {
	out := len(p.downed) > 0
	switch {
	case k == KindTime && out:
		return n - 1
	case k == KindWhat && out && s.rng.IntN(12) == 0:
		return whatTime
	case k == KindUser && out && !p.limited:
		return userStock
	case k == KindWhich && n == 4 && out:
		return 1 // of userStock: for none
	case k == KindUser && s.rng.IntN(3) == 0:
		return []int{userDelete, userFree, userStock}[s.rng.IntN(3)]
	}
	return s.Ails.Pick(p, k, n)
}

// Loads is a swarm in which of four things that people do one is to want more Pods or fewer.
type Loads struct{ *Swarm }

// Pick implements [Strategy].
func (s Loads) Pick(p *Play, k Kind, n int) int {
	if k == KindUser && s.rng.IntN(4) == 0 {
		return userLoad
	}
	return s.Swarm.Pick(p, k, n)
}

// Prefers is a swarm in which every other thing that people do is one of Users.
type Prefers struct {
	*Swarm

	Users []int
}

// Pick implements [Strategy].
func (s Prefers) Pick(p *Play, k Kind, n int) int {
	if k == KindUser && s.rng.IntN(2) == 0 {
		return s.Users[s.rng.IntN(len(s.Users))]
	}
	return s.Swarm.Pick(p, k, n)
}
