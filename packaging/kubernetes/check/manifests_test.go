// Package check holds the manifests to the types of the Kubernetes API. It is a
// module of its own, so that these types are no dependency of memagent.
package check

import (
	"path"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// manifests is what one kustomization makes.
type manifests struct {
	namespace corev1.Namespace
	account   corev1.ServiceAccount
	config    corev1.ConfigMap
	daemons   appsv1.DaemonSet
}

// build builds a kustomization and decodes what it makes: one of each kind, and
// no key that the API does not have.
func build(t *testing.T, folder string) (m manifests) {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	into := map[string]any{
		"v1 Namespace": &m.namespace, "v1 ServiceAccount": &m.account, "v1 ConfigMap": &m.config, "apps/v1 DaemonSet": &m.daemons,
	}
	for _, r := range made.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		gvk := r.GetGvk()
		kind := strings.TrimPrefix(gvk.Group+"/"+gvk.Version, "/") + " " + gvk.Kind
		if into[kind] == nil {
			t.Fatalf("an unexpected or second %s", kind)
		}
		if err := yaml.UnmarshalStrict(text, into[kind]); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		delete(into, kind)
		if ns := r.GetNamespace(); kind != "v1 Namespace" && ns != m.namespace.Name {
			t.Errorf("%s is in the namespace %q", kind, ns)
		}
	}
	for kind := range into {
		t.Errorf("there is no %s", kind)
	}
	return m
}

func (m *manifests) container(t *testing.T) *corev1.Container {
	t.Helper()
	if n := len(m.daemons.Spec.Template.Spec.Containers); n != 1 {
		t.Fatalf("%d containers", n)
	}
	return &m.daemons.Spec.Template.Spec.Containers[0]
}

func (m *manifests) mount(t *testing.T, path string) corev1.VolumeMount {
	t.Helper()
	for _, v := range m.container(t).VolumeMounts {
		if v.MountPath == path {
			return v
		}
	}
	t.Fatalf("nothing is mounted at %s", path)
	return corev1.VolumeMount{}
}

func TestBothKustomizationsAreWhole(t *testing.T) {
	for _, folder := range []string{"../base", "../enforce"} {
		m := build(t, folder)
		pod := &m.daemons.Spec.Template
		for k, v := range m.daemons.Spec.Selector.MatchLabels {
			if pod.Labels[k] != v {
				t.Errorf("%s: the selector %s=%s does not match the pods", folder, k, v)
			}
		}
		if pod.Spec.ServiceAccountName != m.account.Name {
			t.Errorf("%s: account %q, and there is %q", folder, pod.Spec.ServiceAccountName, m.account.Name)
		}
		var volumes, mounted []string
		for _, v := range pod.Spec.Volumes {
			volumes = append(volumes, v.Name)
			if v.ConfigMap != nil && v.ConfigMap.Name != m.config.Name {
				t.Errorf("%s: config map %q, and there is %q", folder, v.ConfigMap.Name, m.config.Name)
			}
		}
		for _, v := range m.container(t).VolumeMounts {
			mounted = append(mounted, v.Name)
		}
		slices.Sort(volumes)
		slices.Sort(mounted)
		if !slices.Equal(volumes, mounted) {
			t.Errorf("%s: volumes %q, mounted %q", folder, volumes, mounted)
		}
		if image := m.container(t).Image; image == "memagent" || strings.HasSuffix(image, ":latest") || !strings.Contains(image, ":") {
			t.Errorf("%s: image %q does not say which version", folder, image)
		}
		if m.config.Data["memagent.yaml"] == "" {
			t.Errorf("%s: no memagent.yaml in the config map", folder)
		}
		limits, requests := m.container(t).Resources.Limits, m.container(t).Resources.Requests
		if !limits.Memory().Equal(*requests.Memory()) || limits.Memory().IsZero() {
			t.Errorf("%s: its memory is not reserved", folder)
		}
	}
}

func TestWatchingCannotWrite(t *testing.T) {
	m := build(t, "../base")
	c := m.container(t)
	s := c.SecurityContext
	if s == nil || s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
		t.Errorf("security context %+v: want no capability", s)
	}
	for _, v := range c.VolumeMounts {
		if !v.ReadOnly {
			t.Errorf("%s can be written to", v.MountPath)
		}
	}
	if v := m.mount(t, "/host/sys"); v.RecursiveReadOnly == nil || *v.RecursiveReadOnly != corev1.RecursiveReadOnlyIfPossible {
		t.Error("what is mounted below /sys can be written to")
	}
	if slices.Contains(c.Args, "--enforce") {
		t.Errorf("args %q", c.Args)
	}
}

func TestTheSpecsOfContainersAreSeenAndTheRuntimesSocketsAreNot(t *testing.T) {
	for _, folder := range []string{"../base", "../enforce"} {
		m := build(t, folder)
		host := map[string]string{}
		for _, v := range m.daemons.Spec.Template.Spec.Volumes {
			if v.HostPath != nil {
				host[v.Name] = v.HostPath.Path
			}
		}
		specs := 0
		for _, v := range m.container(t).VolumeMounts {
			if host[v.Name] == "" || host[v.Name] == "/var/lib/memagent" {
				continue
			}
			if v.MountPath != "/host"+host[v.Name] {
				t.Errorf("%s: %s is mounted at %s, where nobody looks for it", folder, host[v.Name], v.MountPath)
			}
			if name := path.Base(v.MountPath); name != "io.containerd.runtime.v2.task" && name != "overlay-containers" {
				continue
			}
			specs++
			if !v.ReadOnly || v.RecursiveReadOnly == nil || *v.RecursiveReadOnly != corev1.RecursiveReadOnlyIfPossible || v.MountPropagation == nil || *v.MountPropagation != corev1.MountPropagationNone {
				t.Errorf("%s: %s, or a root file system of a container below it, can be written to", folder, v.MountPath)
			}
		}
		if specs != 3 {
			t.Errorf("%s: %d folders with specs of containers are mounted", folder, specs)
		}
		for _, path := range host {
			if path == "/" || path == "/run" || path == "/run/containerd" || path == "/run/crio" {
				t.Errorf("%s: %s has the socket of a runtime, through which its user is root of the node", folder, path)
			}
		}
	}
}

func TestActingCanWriteWhatItNeedsAndNoMore(t *testing.T) {
	m := build(t, "../enforce")
	c := m.container(t)
	if s := c.SecurityContext; !slices.Equal(s.Capabilities.Add, []corev1.Capability{"DAC_OVERRIDE"}) || *s.Privileged || !*s.ReadOnlyRootFilesystem {
		t.Errorf("security context %+v", s)
	}
	var writable []string
	for _, v := range c.VolumeMounts {
		if !v.ReadOnly {
			writable = append(writable, v.MountPath)
		}
	}
	slices.Sort(writable)
	if want := []string{"/host/sys", "/var/lib/memagent"}; !slices.Equal(writable, want) {
		t.Errorf("writable: %q, want %q", writable, want)
	}
	if !slices.Contains(c.Args, "--enforce") {
		t.Errorf("args %q", c.Args)
	}
	if m.daemons.Spec.UpdateStrategy.RollingUpdate.MaxSurge.IntValue() != 0 {
		t.Error("two pods on one node would need the same state directory")
	}
}
