#!/usr/bin/env python3
"""The controller of docs/consist-tutorial.md in another process and language: python3 directory.py DIRECTORY PORT.

It answers the document's methods for `linchpin consist enable remote --adapter-url http://127.0.0.1:PORT`: a pod in
traffic is a file DIRECTORY/<namespace>/<service>/<pod> that holds its address. Only Python's own library is needed.
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROOT = sys.argv[1] if len(sys.argv) > 1 else "traffic"


def folder(employer):
    return os.path.join(ROOT, employer["metadata"]["namespace"], employer["metadata"]["name"])


def entry(name, ip):
    return {"id": name, "name": name, "statuses": {"ip": ip, "lifecycleReady": True}}


def expected_employer(asked):
    return {"items": [{"id": asked["employer"]["metadata"]["name"], "statuses": {}}]}


def current_employer(asked):
    return expected_employer(asked) if os.path.isdir(folder(asked["employer"])) else {"items": []}


def create_employer(asked, item):
    os.makedirs(folder(asked["employer"]), exist_ok=True)


def delete_employer(asked, item):
    if os.path.isdir(folder(asked["employer"])):
        os.rmdir(folder(asked["employer"]))  # fails while there are pods in it: asked for again


def expected_employee(asked):
    ready = [pod for pod in asked["employees"] if pod["common"]["lifecycleReady"]]
    return {"items": [entry(pod["object"]["metadata"]["name"], pod["common"]["ip"]) for pod in ready]}


def current_employee(asked):
    path = folder(asked["employer"])
    names = os.listdir(path) if os.path.isdir(path) else []
    return {"items": [entry(name, open(os.path.join(path, name)).read()) for name in names]}


def write_employee(asked, item):
    with open(os.path.join(folder(asked["employer"]), item["name"]), "w") as file:
        file.write(item["statuses"]["ip"])


def delete_employee(asked, item):
    path = os.path.join(folder(asked["employer"]), item["name"])
    if os.path.exists(path):
        os.remove(path)


def each(change):
    """A method that changes items, one by one: one that fails keeps no other from being tried."""

    def method(asked):
        succeeded, failed = [], []
        for item in asked["items"]:
            try:
                change(asked, item)
                succeeded.append(item["id"])
            except OSError as error:
                failed.append({"id": item["id"], "message": error.strerror})
        return {"succeeded": succeeded, "failed": failed}

    return method


METHODS = {
    "GetExpectedEmployer": expected_employer,
    "GetCurrentEmployer": current_employer,
    "CreateEmployer": each(create_employer),
    "UpdateEmployer": each(create_employer),
    "DeleteEmployer": each(delete_employer),
    "GetExpectedEmployee": expected_employee,
    "GetCurrentEmployee": current_employee,
    "CreateEmployees": each(write_employee),
    "UpdateEmployees": each(write_employee),
    "DeleteEmployees": each(delete_employee),
}


class Adapter(BaseHTTPRequestHandler):
    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        if self.path == "/v1/adapter":
            self.answer(200, {"contract": "linchpin.dev/consist/v1", "controllerName": "directory-controller"})
        else:
            self.answer(404, {"message": "try /v1/adapter"})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method = METHODS.get(self.path.removeprefix("/v1/"))
        try:
            self.answer(200, method(asked)) if method else self.answer(404, {"message": "no such method"})
        except OSError as error:
            self.answer(500, {"message": error.strerror})

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 9901), Adapter)
    print(f"the adapter listens on http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()
