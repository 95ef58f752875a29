package main

import (
	"os"
	"testing"
)

// TestHiddenVariables wants a hidden variable to be read as before, as often as it is asked for, and to be gone from what children
// inherit.
func TestHiddenVariables(t *testing.T) {
	t.Setenv("RIDGEPOINT_TEST_HIDDEN", "a key")
	var own variables
	env := environment{getenv: own.get, hideFunc: own.hide}
	for range 2 {
		env.hide("", "RIDGEPOINT_TEST_HIDDEN", "RIDGEPOINT_TEST_NOT_SET")
		if got := env.getenv("RIDGEPOINT_TEST_HIDDEN"); got != "a key" {
			t.Errorf("%q", got)
		}
		if _, ok := os.LookupEnv("RIDGEPOINT_TEST_HIDDEN"); ok {
			t.Error("children would inherit it")
		}
	}
	if env.getenv("RIDGEPOINT_TEST_NOT_SET") != "" || env.getenv("PATH") != os.Getenv("PATH") {
		t.Error("other variables changed")
	}
}
