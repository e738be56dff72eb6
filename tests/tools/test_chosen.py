# SPDX-License-Identifier: MIT
"""Which tests of a file lib/chosen.py chooses."""

from chosen import speaking

FILE = """
import os
LESS = 3 if SANITIZED else 10
TWICE = 2 * LESS
def helper():
    return gateway(workers=2)
@pytest.fixture
def crowd(host):
    return helper()
class Flood:
    def run(self):
        return TWICE
def test_plain(host):
    '''Nothing of it.'''
@pytest.mark.parametrize("workers", [1, 2])
def test_marked(host):
    pass
def test_by_function():
    assert helper()
def test_by_fixture(crowd):
    pass
@pytest.mark.usefixtures("crowd")
def test_by_mark():
    pass
def test_by_constant():
    assert Flood().run() > 1
"""


def chosen_of(words):
    return sorted(name for name in speaking(FILE, words) if name.startswith("test_"))


def test_who_says_it_or_uses_what_says_it_is_chosen():
    assert chosen_of("workers") == ["test_by_fixture", "test_by_function", "test_by_mark", "test_marked"]
    assert chosen_of("SANITIZED|sanitized") == ["test_by_constant"]
    assert chosen_of("nobody") == []
