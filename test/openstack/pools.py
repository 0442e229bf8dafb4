# SPDX-License-Identifier: Apache-2.0
"""Succeeds if Cinder's scheduler knows a pool for volumes: the volume service tells it of its pools only after it is up."""

import json
import sys
import urllib.request

PASSWORD, KEYSTONE, CINDER = sys.argv[1:]


def call(url, body=None, **headers):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json", **headers})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.headers, json.load(answer)


default = {"id": "default"}
admin = {"user": {"name": "admin", "domain": default, "password": PASSWORD}}
scope = {"project": {"name": "admin", "domain": default}}
identity = {"methods": ["password"], "password": admin}
headers, answer = call("http://127.0.0.1:%s/v3/auth/tokens" % KEYSTONE, {"auth": {"identity": identity, "scope": scope}})
project = answer["token"]["project"]["id"]
pools = "http://127.0.0.1:%s/v3/%s/scheduler-stats/get_pools" % (CINDER, project)
sys.exit(not call(pools, **{"X-Auth-Token": headers["X-Subject-Token"]})[1]["pools"])
