// SPDX-License-Identifier: Apache-2.0

// Package scheduling holds shared/scheduling to the real scheduler: random situations are put to both. A module of its
// own, since Kubernetes asks for other versions than the product does. SEED=n begins at another situation.
package scheduling
