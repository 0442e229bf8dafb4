// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/json"
	"fmt"
)

// ProgressOf returns what r records of a creation that has further steps, or nothing. Of a record that nobody can read the error is Unknown.
func ProgressOf[T any](r Ref) (p T, err error) {
	if len(r.Progress) == 0 {
		return p, nil
	}
	if err := json.Unmarshal(r.Progress, &p); err != nil {
		return p, Errorf(Unknown, "progress of %s: %w", r.Name, err)
	}
	return p, nil
}

// Incomplete is what a creation looks like that has further steps, which begin with p.
func Incomplete[T any](r Ref, p T) (Instance, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return Instance{}, fmt.Errorf("write progress: %w", err)
	}
	return Instance{UID: r.UID, Name: r.Name, Token: r.Token, State: StateIncomplete, Progress: b}, nil
}

// Halted is what a call of a creation leaves behind that failed. Where nothing is there, or was recorded, that is nothing: else another attempt
// might begin elsewhere, beside the instance.
func Halted[T any](r Ref, p T, there bool, err error) (Instance, error) {
	if !there {
		return Instance{}, err
	}
	in, _ := Incomplete(r, p) // which is nothing where p cannot be written
	return in, err
}
