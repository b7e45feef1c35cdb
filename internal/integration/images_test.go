package integration

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// The images that the tests start, and docker-compose.yml too.
const (
	imageKurrentDB    = "docker.kurrent.io/kurrent-lts/kurrentdb:26.0.3"
	imageEventStoreDB = "eventstore/eventstore:24.10.14"
)

// What the tests start, what docker-compose.yml starts and what the operators' page names
// are the same images, each by the tag of one version.
func TestImages(t *testing.T) {
	compose := readFile(t, "../../docker-compose.yml")
	images := regexp.MustCompile(`(?m)^\s+image: (\S+)$`).FindAllStringSubmatch(compose, -1)
	if len(images) == 0 {
		t.Fatal("docker-compose.yml has no images")
	}
	ours := 0
	for _, image := range images {
		if !regexp.MustCompile(`:\d+\.\d+\.\d+$`).MatchString(image[1]) {
			t.Errorf("docker-compose.yml has image %s, which is not that of one version", image[1])
		}
		if strings.Contains(image[1], "kurrentdb") {
			ours++
			if image[1] != imageKurrentDB {
				t.Errorf("docker-compose.yml starts %s, the tests start %s", image[1], imageKurrentDB)
			}
		}
	}
	if ours == 0 {
		t.Error("docker-compose.yml starts no KurrentDB")
	}
	page := readFile(t, "../../docs/KURRENTDB.md")
	for _, image := range []string{imageKurrentDB, imageEventStoreDB} {
		if !strings.Contains(page, "`"+image+"`") {
			t.Errorf("docs/KURRENTDB.md does not name %s", image)
		}
	}
}

// The URLs that scripts/kurrent prints are those that the README and the operators' page
// tell their readers to use.
func TestURLs(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash here")
	}
	for _, which := range []string{"single", "cluster"} {
		cmd := exec.CommandContext(t.Context(), bash, "../../scripts/kurrent", "url", which)
		cmd.Env = append(os.Environ(), "KURRENTDB_ADMIN_PASSWORD=") // whatever this machine's is
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("scripts/kurrent url %s: %v", which, err)
		}
		url := strings.TrimSpace(string(out))
		for _, file := range []string{"README.md", "docs/KURRENTDB.md"} {
			if !strings.Contains(readFile(t, "../../"+file), url) {
				t.Errorf("%s does not have the URL %s of the %s", file, url, which)
			}
		}
		if _, err := exec.CommandContext(t.Context(), bash, "../../scripts/kurrent", "url", which, "more").Output(); err == nil {
			t.Error("scripts/kurrent takes more than it understands")
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
