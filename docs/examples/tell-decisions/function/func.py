# SPDX-License-Identifier: Apache-2.0
"""Tells a chat what the functions decided. It takes the place of function/func.py after

    func create -l python -t cloudevents tell-decisions

and ../triggers.yaml wakes it. CHAT_URL is where the chat takes {"text": ...}.
"""
import asyncio
import json
import os
import urllib.request

from cloudevents.core.v1.event import CloudEvent


def sentence(data):
    """What is said of a decision: its data as JSON text or bytes, or already read."""
    if isinstance(data, (bytes, str)):
        data = json.loads(data)
    about = f" for {data['subject']}" if data.get("subject") else ""
    would = " would have decided" if data.get("dryRun") else " decided"
    return f"{data['function']}{would}{about}: {data['plan']}"


def post(url, text):
    """Posts a text, or raises: then the answer is 500, and the Trigger's delivery repeats it."""
    request = urllib.request.Request(url, json.dumps({"text": text}).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=5):
        pass


def new():
    return Function()


class Function:
    def start(self, cfg):
        self.url = cfg["CHAT_URL"]

    async def handle(self, scope, receive, send):
        event = scope["event"]
        await asyncio.to_thread(post, getattr(self, "url", os.environ.get("CHAT_URL")), sentence(event.get_data()))
        # Something must be sent. A reply goes to the Broker; nobody subscribes to this type.
        await send(CloudEvent(attributes={"id": f"{event.get_id()}.told", "type": "example.decision.told", "source": "tell-decisions"}, data={}))
