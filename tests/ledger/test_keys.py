"""Names are the same everywhere and for ever, and two things never share one."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from celegraph.errors import InvalidValue
from celegraph.ledger.canonical import canonical_json
from celegraph.ledger.keys import approval_id, args_hash, effect_key, lock_key, message_id

HASH = args_hash({"order": "o-17", "cents": 1999})

# Computes every kind of name in a process of its own; the set fixes no order of the dict's keys.
NAMES = """
from decimal import Decimal
from celegraph.ledger.keys import *
args = {name: Decimal(len(name)) for name in {"order", "cents", "note", "currency", "reason"}}
hashed = args_hash(args)
print(lock_key("run-1"), hashed, effect_key("run-1", "pay", "refund", "1", hashed),
      approval_id("run-1", "i-1", 1))
"""


@pytest.mark.parametrize(
    ("run_id", "key"),
    [
        ("run-1", 5649154386500085045),
        ("run-2", -5057135344721838695),
        ("run_abc123", 3005319785460973546),
    ],
)
def test_f76_key_derivation_changes_between_releases_lock_keys_are_frozen(run_id: str, key: int) -> None:
    assert lock_key(run_id) == key


def test_f76_key_derivation_changes_between_releases_effect_keys_are_frozen() -> None:
    assert HASH == "b47aaec89ed5007151cf0068314399a9dda34d22a9ab4ff68a36f5b348fc8923"
    assert args_hash({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert effect_key("run-1", "pay:1", "refund", "call_abc", HASH) == "cg-zyydga7ybjxmjxspogxfzhaidzoxaheh"
    assert approval_id("run-1", "5d8f", 1) == "ap-lol6gr3t4wkgrattie3kih3tregl7ao3"


def test_f76_key_derivation_changes_between_processes_all_hash_seeds_agree() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", NAMES],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(printed) == 1


@pytest.mark.parametrize(("one", "other"), [("run-17627", "run-41571"), ("run-8630", "run-36230")])
def test_f74_key_cut_to_32_bits(one: str, other: str) -> None:
    assert lock_key(one) != lock_key(other)


def test_f13_1_vs_1_0_after_a_json_hop_has_one_hash() -> None:
    assert args_hash({"hours": 1.0}) == args_hash({"hours": 1})
    assert args_hash({"hours": True}) != args_hash({"hours": 1})


def test_f16_the_model_words_its_arguments_differently_on_the_re_run_and_the_hash_shows_it() -> None:
    first = args_hash({"order": "o-17", "memo": "Refund for order 17"})
    again = args_hash({"order": "o-17", "memo": "Refund: order 17"})

    assert first != again


def test_f17_joined_strings_that_collide() -> None:
    keys = {
        effect_key(*parts, HASH)
        for parts in [
            ("a:b", "c", "pay", "1"), ("a", "b:c", "pay", "1"), ("a", "b", "c:pay", "1"),
            ("a", "pay", "x:y", "1"), ("a", "pay:x", "y", "1"), ("a", "", "pay", "1"),
            ("a", "pay", "", "1"), ("a", "", "", "pay"), ('a","b', "c", "pay", "1"),
        ]
    }  # fmt: skip

    assert len(keys) == 9


def test_f18_provider_rejects_the_keys_form() -> None:
    mail = "someone@shop.example"
    run_id = mail + "x" * (200 - len(mail))

    for name in (
        effect_key(run_id, "überprüfung/zahlung 💶", "refund", "slot", HASH),
        approval_id(run_id, "💶", 1),
    ):
        assert re.fullmatch(r"[a-z0-9-]+", name)
        # A column made for a UUID holds 36.
        assert len(name) == 35
        assert "someone" not in name


def test_an_interrupt_that_asks_again_is_another_approval() -> None:
    ids = {approval_id("run-1", "i", 1), approval_id("run-1", "i", 2), approval_id("run-2", "i", 1)}

    assert len(ids) == 3


def test_a_slot_that_cannot_be_stored_is_named() -> None:
    with pytest.raises(InvalidValue, match=r"^key\.effect\.slot: contains a NUL"):
        effect_key("run-1", "pay", "refund", "call\0", HASH)


def test_a_mail_has_the_same_message_id_on_every_attempt() -> None:
    key = effect_key("run-1", "notify", "mail", "1", HASH)

    assert message_id(key, "Mail.Shop.example") == f"<{key}@mail.shop.example>"


@pytest.mark.parametrize(
    ("key", "domain", "problem"),
    [
        ("cg-1", "", "domain: is not an ASCII domain"),
        ("cg-1", "shop..example", "domain: is not"),
        ("cg-1", "shop.example\n", "domain: is not"),
        ("cg-1", "shop.example>\r\nBcc: x", "domain: is not"),
        ("cg-1", "übung.example", "domain: is not"),
        ("cg 1", "shop.example", "key: is not an effect key"),
        ("", "shop.example", "key: is not an effect key"),
    ],
)
def test_a_message_id_that_would_break_the_header_is_refused(key: str, domain: str, problem: str) -> None:
    with pytest.raises(InvalidValue, match=problem):
        message_id(key, domain)


# Few letters, so that differently cut parts of the same text are tried often.
part = st.text('a:"\\,é', max_size=4)
place = st.tuples(part, part, part, part)


@given(place, place)
def test_two_places_share_a_key_only_if_they_are_one(
    one: tuple[str, str, str, str], other: tuple[str, str, str, str]
) -> None:
    assert (effect_key(*one, HASH) == effect_key(*other, HASH)) == (one == other)


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=5, max_size=5
    )
)
def test_a_key_is_the_digest_of_the_canonical_form_whatever_the_texts(texts: list[str]) -> None:
    run_id, step, tool, slot, hashed = texts
    parts = {"run_id": run_id, "step": step, "tool": tool, "slot": slot, "args_hash": hashed}
    digest = hashlib.sha256(canonical_json({"effect": parts})).digest()

    assert effect_key(**parts) == "cg-" + base64.b32encode(digest[:20]).decode().lower()
