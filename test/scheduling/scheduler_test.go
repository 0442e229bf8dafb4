// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/tainttoleration"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// filters are the plugins that decide whether a Pod may run on a Node, in the scheduler's order.
var filters = []string{
	names.NodeUnschedulable, names.NodeName, names.TaintToleration, names.NodeAffinity, names.NodePorts, names.NodeResourcesFit,
	names.VolumeRestrictions, names.NodeVolumeLimits, names.VolumeBinding, names.VolumeZone, names.PodTopologySpread, names.InterPodAffinity,
}

// beyond are plugins of the default profile that have a say in other things, or in what is beyond shared/scheduling:
// docs/scheduling.md has the reasons.
var beyond = []string{names.DynamicResources, names.NodeDeclaredFeatures, names.DefaultPreemption, names.SchedulingGates}

// scheduler is the real scheduler's framework with its default profile, on one situation after the other.
type scheduler struct {
	framework.Framework
	plugins   map[string]fwk.Plugin
	informers informers.SharedInformerFactory
	snapshot  *schedulercache.Snapshot
	nominated map[string][]fwk.PodInfo
}

func newScheduler(t *testing.T) *scheduler {
	t.Helper()
	metrics.Register()
	ctx := klog.NewContext(t.Context(), klog.Logger{})
	s := &scheduler{plugins: map[string]fwk.Plugin{}, informers: informers.NewSharedInformerFactory(fake.NewClientset(), 0)}
	config, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	profile := &config.Profiles[0]
	profile.Plugins.MultiPoint.Enabled = slices.DeleteFunc(profile.Plugins.MultiPoint.Enabled, func(p schedulerapi.Plugin) bool {
		return slices.Contains(beyond, p.Name)
	})
	registry := frameworkruntime.Registry{}
	for name, factory := range plugins.NewInTreeRegistry() {
		if name == names.TaintToleration { // tolerations that compare are the one thing that is not on by default
			factory = frameworkruntime.FactoryAdapter(feature.Features{EnableTaintTolerationComparisonOperators: true}, tainttoleration.New)
		}
		registry[name] = func(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
			p, err := factory(ctx, args, h)
			s.plugins[name] = p
			return p, err
		}
	}
	s.Framework, err = frameworkruntime.NewFramework(ctx, registry, profile,
		frameworkruntime.WithClientSet(fake.NewClientset()), frameworkruntime.WithInformerFactory(s.informers), frameworkruntime.WithSnapshotSharedLister(s),
		frameworkruntime.WithPodNominator(s), frameworkruntime.WithParallelism(1), frameworkruntime.WithLogger(klog.Logger{}),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(s.informers.Storage().V1().CSINodes().Lister())))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range filters {
		if _, ok := s.plugins[name].(fwk.FilterPlugin); !ok {
			t.Fatalf("the default profile has no filter %s", name)
		}
	}
	return s
}

// fwk.SharedLister: the framework looks at whatever situation is the current one.

func (s *scheduler) NodeInfos() fwk.NodeInfoLister           { return s.snapshot.NodeInfos() }
func (s *scheduler) StorageInfos() fwk.StorageInfoLister     { return s.snapshot.StorageInfos() }
func (s *scheduler) PodGroupStates() fwk.PodGroupStateLister { return s.snapshot.PodGroupStates() }

// fwk.PodNominator.

func (s *scheduler) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}
func (s *scheduler) DeleteNominatedPodIfExists(*corev1.Pod)                        {}
func (s *scheduler) UpdateNominatedPod(klog.Logger, *corev1.Pod, fwk.PodInfo)      {}
func (s *scheduler) NominatedPodsForNode(node string) []fwk.PodInfo                { return s.nominated[node] }

// look makes a situation the current one.
func (s *scheduler) look(x *situation) error {
	var bound []*corev1.Pod
	s.nominated = map[string][]fwk.PodInfo{}
	for _, p := range x.Pods {
		if p.Spec.NodeName != "" {
			bound = append(bound, p)
			continue
		}
		info, err := framework.NewPodInfo(p)
		if err != nil {
			return fmt.Errorf("pod %s: %w", p.Name, err)
		}
		s.nominated[p.Status.NominatedNodeName] = append(s.nominated[p.Status.NominatedNodeName], info)
	}
	s.snapshot = schedulercache.NewSnapshot(bound, x.Nodes)
	core, storage := s.informers.Core().V1(), s.informers.Storage().V1()
	for _, err := range []error{
		fill(core.Nodes().Informer(), x.Nodes), fill(core.Pods().Informer(), bound), fill(core.Namespaces().Informer(), x.Namespaces),
		fill(core.PersistentVolumeClaims().Informer(), x.Claims), fill(core.PersistentVolumes().Informer(), x.Volumes),
		fill(storage.StorageClasses().Informer(), x.Classes), fill(storage.CSINodes().Informer(), x.CSINodes),
		fill(storage.VolumeAttachments().Informer(), x.Attachments), fill(storage.CSIDrivers().Informer(), []*storagev1.CSIDriver{}),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func fill[T any](i cache.SharedIndexInformer, objects []T) error {
	all := make([]any, len(objects))
	for n, o := range objects {
		all[n] = o
	}
	return i.GetIndexer().Replace(all, "")
}

// answer is what the scheduler says about a Pod and a Node.
type answer struct {
	yes     bool
	no      []string // filters that say no
	asked   []string // filters that had something to look at
	reasons []string
}

// ask returns the scheduler's answers about a Pod, by Node of the situation. Each filter is asked beside the whole
// framework, to know who decides; an error says that the two do not agree.
func (s *scheduler) ask(ctx context.Context, p *corev1.Pod) (map[string]answer, error) {
	infos, err := s.snapshot.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	state := framework.NewCycleState()
	_, status, _ := s.RunPreFilterPlugins(ctx, state, p)
	all := map[string]answer{}
	for _, info := range infos {
		if !status.IsSuccess() {
			all[info.Node().Name] = answer{no: []string{status.Plugin()}, asked: []string{status.Plugin()}, reasons: status.Reasons()}
			continue
		}
		a, err := s.filter(ctx, state, p, info)
		if err != nil {
			return nil, err
		}
		all[info.Node().Name] = a
	}
	return all, nil
}

func (s *scheduler) filter(ctx context.Context, state fwk.CycleState, p *corev1.Pod, info fwk.NodeInfo) (a answer, err error) {
	a.yes = s.RunFilterPluginsWithNominatedPods(ctx, state, p, info).IsSuccess()
	beside, besideInfo := state.Clone(), info.Snapshot()
	for _, n := range s.nominated[info.Node().Name] {
		if corev1helpers.PodPriority(n.GetPod()) >= corev1helpers.PodPriority(p) && n.GetPod().UID != p.UID {
			besideInfo.AddPodInfo(n)
			if status := s.RunPreFilterExtensionAddPod(ctx, beside, p, n, besideInfo); !status.IsSuccess() {
				return a, status.AsError()
			}
		}
	}
	for _, name := range filters {
		if state.GetSkipFilterPlugins().Has(name) {
			continue
		}
		a.asked = append(a.asked, name)
		f := s.plugins[name].(fwk.FilterPlugin)
		with, without := f.Filter(ctx, beside, p, besideInfo), f.Filter(ctx, state, p, info)
		if !with.IsSuccess() || !without.IsSuccess() {
			a.no = append(a.no, name)
			a.reasons = append(append(a.reasons, reasons(with)...), reasons(without)...)
		}
	}
	if a.yes != (len(a.no) == 0) {
		return a, fmt.Errorf("pod %s on %s: the framework says %v, its filters no: %v", p.Name, info.Node().Name, a.yes, a.no)
	}
	return a, nil
}

func reasons(s *fwk.Status) []string {
	if s.IsSuccess() {
		return nil
	}
	return s.Reasons()
}
