"""Parts of a tree of dicts: some of its leaves at their places, and the whole put together."""

from collections.abc import Collection, Sequence
from typing import Any

from orbax_bench_core.benchmarks.support.needs import require_tree
from orbax_bench_core.interface import TestContext, UnmetNeed

Tree = dict[str, Any]


def require_dicts(context: TestContext, benchmark: str) -> Tree:
    """Returns the checkpoint data of a repeat in nested dicts alone: parts of it are trees.

    Raises:
        UnmetNeed: There is no checkpoint data, or it has other containers than dicts.
    """
    from orbax_bench_core.state import named_leaves

    tree = require_tree(context, benchmark)
    named = dict(named_leaves(tree))
    if not isinstance(tree, dict) or dict(named_leaves(only(tree, named))).keys() != named.keys():
        raise UnmetNeed(
            f"{benchmark} needs a checkpoint of nested dicts, of which it can take parts: give a "
            "checkpoint_config with a spec or a model"
        )
    return tree


def only(tree: Tree, names: Collection[str], above: str = "") -> Tree:
    """Returns the part of a tree that has the leaves of these dotted names, and no empty dict.

    Args:
        tree: Nested dicts.
        names: Dotted names of leaves; a name of a dict takes all that is in it.
        above: Dotted name of `tree` itself, with a dot at its end; empty for the root.
    """
    found = {}
    for key, child in tree.items():
        name = f"{above}{key}"
        if name in names:
            found[key] = child
        elif isinstance(child, dict) and (below := only(child, names, f"{name}.")):
            found[key] = below
    return found


def divided(tree: Tree, count: int, benchmark: str) -> list[Tree]:
    """Returns so many parts of a tree of about the same bytes, which have each leaf once.

    The largest leaf goes first, each to the part with the fewest bytes so far: longest processing
    time first (Graham 1969), by which the largest part has at most 4/3 of what the best division
    gives it.

    Args:
        tree: Nested dicts.
        count: How many parts.
        benchmark: Name of the benchmark, for the message.

    Raises:
        UnmetNeed: It has fewer leaves than parts.
    """
    from orbax_bench_core.state import named_leaves, tree_bytes

    named = named_leaves(tree)
    if len(named) < count:
        raise UnmetNeed(
            f"{benchmark} cannot divide a checkpoint of {len(named)} leaves into {count}; add "
            "arrays to the checkpoint_config"
        )
    parts: list[tuple[int, int, list[str]]] = [(0, index, []) for index in range(count)]
    # The largest first, each to the part that has least yet: of bytes, and then of leaves.
    for name, leaf in sorted(named, key=lambda one: -tree_bytes(one[1])):
        held, index, names = min(parts, key=lambda part: (part[0], len(part[2])))
        parts[index] = (held + tree_bytes(leaf), index, [*names, name])
    return [only(tree, names) for _, _, names in parts]


def merged(parts: Sequence[Tree]) -> Tree:
    """Returns the tree that has the leaves of all parts.

    Args:
        parts: Trees of nested dicts; where two have a leaf of one name, that of the last one stays.
    """
    whole: Tree = {}
    for part in parts:
        for key, child in part.items():
            both = key in whole and isinstance(child, dict)
            whole[key] = merged([whole[key], child]) if both else child
    return whole
