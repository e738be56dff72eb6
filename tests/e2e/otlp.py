# SPDX-License-Identifier: MIT
"""A receiver of traces by OTLP over HTTP, in JSON, which strictly checks opentelemetry-proto's schema (trace/v1,
common/v1, resource/v1): no key that it does not have, every value of its type, ids as hexadecimal digits, 64-bit
numbers as texts."""

import json
import re

from host import Host, Reply, wait_until

SERVER, CLIENT = 2, 3
PATH = "/v1/traces"


def is_hex(length):
    return lambda value: isinstance(value, str) and re.fullmatch(f"[0-9a-f]{{{length}}}", value) and set(value) != {"0"}


def is_long(value):
    return isinstance(value, str) and re.fullmatch("0|[1-9][0-9]*", value) and int(value) < 2**64


def is_int(value):
    return type(value) is int and 0 <= value < 2**32


def is_text(value):
    return isinstance(value, str)


def is_value(value):
    kinds = {"stringValue": is_text, "boolValue": lambda v: type(v) is bool, "intValue": is_long, "doubleValue": lambda v: type(v) in (int, float)}
    return isinstance(value, dict) and len(value) == 1 and all(kinds[kind](each) for kind, each in value.items())


def list_of(shape):
    return lambda value: isinstance(value, list) and all(fits(each, shape) for each in value)


def fits(value, shape):
    """A mapping from keys to the checks of their values; a key that ends with ! is required."""
    if callable(shape):
        assert shape(value), (value, shape)
        return True
    assert isinstance(value, dict), value
    known = {key.rstrip("!"): each for key, each in shape.items()}
    assert set(value) <= set(known), set(value) - set(known)
    assert all(key[:-1] in value for key in shape if key[-1] == "!"), value
    return all(fits(each, known[key]) for key, each in value.items())


ATTRIBUTES = list_of({"key!": is_text, "value!": is_value})
LINK = {"traceId!": is_hex(32), "spanId!": is_hex(16), "traceState": is_text, "attributes": ATTRIBUTES, "droppedAttributesCount": is_int, "flags": is_int}
EVENT = {"timeUnixNano!": is_long, "name!": is_text, "attributes": ATTRIBUTES, "droppedAttributesCount": is_int}
SPAN = {
    "traceId!": is_hex(32),
    "spanId!": is_hex(16),
    "traceState": is_text,
    "parentSpanId": is_hex(16),
    "flags": is_int,
    "name!": lambda value: is_text(value) and value,
    "kind!": lambda value: value in range(6),
    "startTimeUnixNano!": is_long,
    "endTimeUnixNano!": is_long,
    "attributes": ATTRIBUTES,
    "droppedAttributesCount": is_int,
    "events": list_of(EVENT),
    "droppedEventsCount": is_int,
    "links": list_of(LINK),
    "droppedLinksCount": is_int,
    "status": {"message": is_text, "code": lambda value: value in range(3)},
}
SCOPE = {"name!": is_text, "version": is_text, "attributes": ATTRIBUTES, "droppedAttributesCount": is_int}
RESOURCE = {"attributes!": ATTRIBUTES, "droppedAttributesCount": is_int}
SCOPE_SPANS = {"scope": SCOPE, "spans!": list_of(SPAN), "schemaUrl": is_text}
EXPORT = {"resourceSpans!": list_of({"resource!": RESOURCE, "scopeSpans!": list_of(SCOPE_SPANS), "schemaUrl": is_text})}


def attributes_of(pairs):
    """{key: value}; each key is there once."""
    found = {}
    for pair in pairs:
        ((kind, value),) = pair["value"].items()
        assert pair["key"] not in found, pair
        found[pair["key"]] = int(value) if kind == "intValue" else value
    return found


class Span:
    def __init__(self, data, resource):
        self.data, self.resource = data, resource
        self.trace, self.id, self.parent = data["traceId"], data["spanId"], data.get("parentSpanId")
        self.name, self.kind = data["name"], data["kind"]
        self.start, self.end = int(data["startTimeUnixNano"]), int(data["endTimeUnixNano"])
        assert self.start <= self.end, data
        self.attributes = attributes_of(data.get("attributes", []))
        self.events = {each["name"]: each for each in data.get("events", [])}
        self.failed = data.get("status", {}).get("code") == 2
        assert self.failed == ("error.type" in self.attributes), data

    def get(self, key):
        return self.attributes.get(key)


def spans_of(body):
    """The spans of one export, checked."""
    export = json.loads(body)
    fits(export, EXPORT)
    found = []
    for of_resource in export["resourceSpans"]:
        resource = attributes_of(of_resource["resource"]["attributes"])
        for of_scope in of_resource["scopeSpans"]:
            found += [Span(each, resource) for each in of_scope["spans"]]
    return found


class Collector(Host):
    """A host that takes exports. Answers are replies of Host: on(PATH, Reply(503), ...)."""

    def __init__(self, **more):
        super().__init__(**more)
        self.on(PATH, Reply(200, b"{}", {"Content-Type": "application/json"}))

    @property
    def endpoint(self):
        return f"{'https' if self.tls else 'http'}://{self.address}"

    def spans(self):
        """All spans that came, whatever the receiver answered."""
        found = []
        for export in list(self.requests):
            if export.complete:
                assert (export.method, export.target, export.get("content-type")) == ("POST", PATH, "application/json")
                found += spans_of(export.body)
        return found

    def wait_spans(self, count):
        wait_until(lambda: len(self.spans()) >= count, what=lambda: [each.name for each in self.spans()])
        return self.spans()


def tree(spans):
    """{id: span}, the root, and a function that gives the children of a span in their order."""
    known = {each.id: each for each in spans}
    assert len(known) == len(spans), "an id is there twice"
    roots = [each for each in spans if each.parent not in known]
    return known, roots, lambda span: sorted((each for each in spans if each.parent == span.id), key=lambda each: each.start)
