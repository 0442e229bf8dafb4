// SPDX-License-Identifier: Apache-2.0

package sim

// Restores is a strategy in which the storage of the API server is backed up at one step and restored at another.
type Restores struct {
	Strategy
	Backup, Restore int
}

// NewRestores returns the strategy of one seed; half of its steps, or more, come after the restore.
func NewRestores(seed uint64, steps int) Restores {
	s := NewSwarm(seed)
	backup := s.rng.IntN(steps / 4)
	return Restores{s, backup, backup + 1 + s.rng.IntN(steps/4)}
}

// Pick implements [Strategy].
func (s Restores) Pick(p *Play, k Kind, n int) int {
	due := p.steps == s.Backup || p.steps == s.Restore
	switch {
	case due && k == KindWhat:
		return whatUser
	case due && k == KindUser:
		return userRestoreAll // of which there is nothing yet the first time: then it is taken
	}
	return s.Strategy.Pick(p, k, n)
}
