"""Additional properties in namespaces."""

from __future__ import annotations

from agentbench import get_namespaced_value, merge_additional_properties, with_namespaced_value
from tests.parts.errors import raises


def test_a_value_is_found_in_its_namespace_only():
    properties = {"shop": {"order": 7}, "order": 8, "text": "shop"}
    assert get_namespaced_value(properties, "shop", "order") == 7
    assert get_namespaced_value(properties, "shop", "paid", "no") == "no"
    assert get_namespaced_value(properties, "text", "order") is None
    assert get_namespaced_value(None, "shop", "order") is None


def test_a_new_value_keeps_the_others_and_changes_no_argument():
    properties = {"shop": {"order": 7}, "lang": "en"}
    changed = with_namespaced_value(properties, "shop", "order", 8)
    assert changed == {"shop": {"order": 8}, "lang": "en"}
    assert properties == {"shop": {"order": 7}, "lang": "en"}
    assert with_namespaced_value(None, "shop", "order", 1) == {"shop": {"order": 1}}
    assert with_namespaced_value({"shop": "closed"}, "shop", "order", 1) == {"shop": {"order": 1}}


def test_merging_keeps_the_values_of_all_and_the_latest_wins():
    merged = merge_additional_properties({"a": {"x": 1, "y": 1}, "b": 1}, None, {"a": {"y": 2}, "b": {"z": 3}})
    assert merged == {"a": {"x": 1, "y": 2}, "b": {"z": 3}}


def test_what_is_no_dictionary_is_refused():
    with raises(TypeError, "are 3"):
        merge_additional_properties({"a": 1}, 3)  # type: ignore[arg-type]
