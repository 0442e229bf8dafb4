// SPDX-License-Identifier: Apache-2.0

// Command run decides about workload files, in this process and one after the other, and prints a line of JSON about
// each. Peak memory is the process's: give it one file for that figure to mean something.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"

	"github.com/machine-functions/machine-functions/test/bench"
)

func main() {
	runs := flag.Int("runs", 3, "decisions about each workload; the best counts")
	profile := flag.String("cpuprofile", "", "file for a profile")
	flag.Parse()
	// As the function runs: on one core, with the memory that it is given.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(50) // config/services
	if err := run(flag.Args(), *runs, *profile); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(files []string, runs int, profile string) error {
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
	}
	for _, file := range files {
		w, err := bench.Load(file)
		if err != nil {
			return err
		}
		r, err := bench.Measure(w, runs)
		if err != nil {
			return err
		}
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return nil
}
