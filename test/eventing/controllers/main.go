// SPDX-License-Identifier: Apache-2.0

// Command controllers runs Knative Eventing's own controllers for Broker, Trigger, Subscription, InMemoryChannel, ApiServerSource and
// PingSource in one process, together with the dispatcher of in-memory channels.
package main

import (
	filtered "knative.dev/pkg/client/injection/kube/informers/factory/filtered"
	"knative.dev/pkg/injection/sharedmain"
	"knative.dev/pkg/signals"

	"knative.dev/eventing/pkg/auth"
	"knative.dev/eventing/pkg/eventingtls"
	"knative.dev/eventing/pkg/reconciler/apiserversource"
	"knative.dev/eventing/pkg/reconciler/broker"
	trigger "knative.dev/eventing/pkg/reconciler/broker/trigger"
	channel "knative.dev/eventing/pkg/reconciler/inmemorychannel/controller"
	"knative.dev/eventing/pkg/reconciler/inmemorychannel/dispatcher"
	"knative.dev/eventing/pkg/reconciler/pingsource"
	"knative.dev/eventing/pkg/reconciler/subscription"
)

func main() {
	ctx := filtered.WithSelectors(signals.NewContext(), auth.OIDCLabelSelector, eventingtls.TrustBundleLabelSelector)
	// There is one replica, so nobody to elect; whoever started the process watches it, so nobody to probe it.
	ctx = sharedmain.WithHealthProbesDisabled(sharedmain.WithHADisabled(ctx))
	sharedmain.MainWithContext(ctx, "controllers",
		broker.NewController,
		trigger.NewController,
		subscription.NewController,
		channel.NewController,
		dispatcher.NewController,
		apiserversource.NewController,
		pingsource.NewController,
	)
}
