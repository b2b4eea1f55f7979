"""The synapses of a projection: a matrix, a sparse matrix, a convolution or a diagonal.

Each kind stores only its distinct parameters and represents a matrix W (post, pre): `apply`
computes W x, `fan_in` and `fan_out` count synapses by neuron, `T` is the transpose, `to_csr` and
`dense` return W or some of its rows. A weight of zero is no synapse.

`ConvolutionSynapses` share the weights of a kernel. With an image of (channels, height, width) as
input, and m the sum of the image over squares of `pool` by `pool`, zero outside,

    y[o, i, j] = sum over c, a, b of K[o, c, a, b] m[c, stride i + a - padding, stride j + b - ...]

For average pooling, K includes the division by pool^2, so that synapses have the weights K.
`transposed` synapses run from the output of that convolution to its image.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Ints, Shape

BLOCK = 2**22
"""Default number of entries of a dense block of rows."""
PART = 2**17
"""Number of weights of rows that are looked at together."""
LARGEST = 2**29
"""Number of entries of the largest matrix that `dense` returns; 4 GB."""
HASHED_DENSE = 1024
"""Diagonals up to this size are hashed as the dense matrix that version 0.1 stored."""

Indices = npt.NDArray[np.int32]


class Synapses(ABC):
    """The synapses of a projection; `DenseSynapses` and the other classes of this module."""

    __slots__ = ()
    kind: ClassVar[str]

    if TYPE_CHECKING:  # SparseSynapses has a field `shape`, whose default this would become

        @property
        def shape(self) -> tuple[int, int]:
            """The numbers of target and source neurons."""
            ...

    @property
    @abstractmethod
    def values(self) -> Array:
        """The distinct parameters, in an array of any shape."""

    @abstractmethod
    def with_values(self, values: Array) -> Synapses:
        """The same connections with other parameters."""

    @property
    @abstractmethod
    def T(self) -> Synapses:  # noqa: N802 - as in NumPy
        """The transpose, from the target neurons to the source neurons."""

    @abstractmethod
    def apply(self, x: Array) -> Array:
        """W x for each row of x, (samples, source neurons)."""

    @abstractmethod
    def to_csr(self) -> SparseSynapses:
        """W as a sparse matrix."""

    @abstractmethod
    def fill(self, block: Array, start: int) -> None:
        """Write the rows of W from `start` on into `block`, which must be zero."""

    @property
    @abstractmethod
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays that store the synapses, by name."""

    @property
    def settings(self) -> dict[str, Any]:
        """Fields other than arrays, as JSON values."""
        return {}

    @abstractmethod
    def row_maxima(self) -> Array:
        """The largest |w| of each target neuron, in a shape that broadcasts to `values`.

        Neurons that share weights share the maximum.
        """

    @property
    def count(self) -> int:
        """The number of synapses: pairs of neurons with a weight that is not zero."""
        return int(self.fan_in().sum())

    @property
    def parameters(self) -> int:
        """The number of distinct parameters."""
        return int(self.values.size)

    @property
    def nbytes(self) -> int:
        """The memory of the arrays, in bytes."""
        return sum(array.nbytes for array in self.arrays.values())

    def nonzero(self) -> Synapses:
        """The same connections with weight one wherever there is a synapse."""
        return self.with_values((self.values != 0).astype(np.float64))

    def fan_in(self) -> Ints:
        """The number of synapses of each target neuron."""
        return self.nonzero().row_sums().astype(np.int64)

    def fan_out(self) -> Ints:
        """The number of synapses of each source neuron."""
        return self.nonzero().T.row_sums().astype(np.int64)

    def row_sums(self) -> Array:
        """The sum of the weights of each target neuron."""
        return np.asarray(self.apply(np.ones((1, self.shape[1])))[0])

    def scaled(self, factor: float) -> Synapses:
        """All weights times a factor."""
        if factor == 1.0:
            return self
        return self.with_values(factor * self.values)

    def dense(self, start: int = 0, stop: int | None = None) -> Array:
        """The rows of W from `start` to `stop`; ValueError above 4 GB."""
        stop = self.shape[0] if stop is None else stop
        shape = (stop - start, self.shape[1])
        if prod(shape) > LARGEST:
            raise ValueError(
                f"synapses of shape {self.shape} would take {8 * prod(shape) / 1e9:.0f} GB as a "
                f"matrix and take {self.nbytes / 1e9:.2g} GB now; use blocks of rows, or `apply`"
            )
        block = np.zeros(shape)
        self.fill(block, start)
        return block

    def blocks(self, entries: int = BLOCK) -> Iterator[tuple[slice, Array]]:
        """Yields W in dense blocks of rows, each with its slice of rows."""
        rows = max(1, entries // max(1, self.shape[1]))
        for start in range(0, self.shape[0], rows):
            stop = min(start + rows, self.shape[0])
            yield slice(start, stop), self.dense(start, stop)

    def equals(self, other: Synapses) -> bool:
        """Whether `other` has the same kind, settings and parameters."""
        if type(self) is not type(other) or self.shape != other.shape:
            return False
        return self.settings == other.settings and all(
            np.array_equal(mine, theirs)
            for mine, theirs in zip(self.arrays.values(), other.arrays.values(), strict=True)
        )

    def is_transpose_of(self, other: Synapses) -> bool:
        """Whether `other` transposed equals these synapses."""
        return self.equals(other.T)

    def row_parts(self) -> Iterator[Synapses]:
        """Synapses of consecutive rows, small enough for the cache where rows can be told apart."""
        yield self

    def hashed(self) -> Iterator[bytes]:
        """The bytes that the digest of a network hashes."""
        yield f"{self.kind} {self.shape} {sorted(self.settings.items())}".encode()
        for array in self.arrays.values():
            yield np.ascontiguousarray(array).tobytes()


@dataclass(frozen=True, slots=True, eq=False)
class DenseSynapses(Synapses):
    """A weight for every pair of neurons: W = weight."""

    weight: Array
    kind: ClassVar[str] = "dense"

    def __post_init__(self) -> None:
        if self.weight.ndim != 2:
            raise ValueError(f"weights must be a matrix (post, pre), not {self.weight.shape}")

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix."""
        return (self.weight.shape[0], self.weight.shape[1])

    @property
    def values(self) -> Array:
        """The matrix."""
        return self.weight

    def with_values(self, values: Array) -> DenseSynapses:
        """Synapses with another matrix."""
        return DenseSynapses(values)

    @property
    def T(self) -> DenseSynapses:  # noqa: N802
        """The transposed matrix."""
        return DenseSynapses(self.weight.T)

    def apply(self, x: Array) -> Array:
        """The product with the matrix."""
        return np.asarray(x @ self.weight.T)

    def fan_in(self) -> Ints:
        """Nonzero weights by row."""
        return np.asarray(np.count_nonzero(self.weight, axis=1), dtype=np.int64)

    def fan_out(self) -> Ints:
        """Nonzero weights by column."""
        return np.asarray(np.count_nonzero(self.weight, axis=0), dtype=np.int64)

    def row_sums(self) -> Array:
        """Sums by row."""
        return np.asarray(self.weight.sum(axis=1))

    def to_csr(self) -> SparseSynapses:
        """The nonzero weights."""
        return csr(self.weight)

    def fill(self, block: Array, start: int) -> None:
        """Copy rows."""
        block[:] = self.weight[start : start + len(block)]

    def dense(self, start: int = 0, stop: int | None = None) -> Array:
        """Rows of the matrix, without a copy."""
        if start == 0 and (stop is None or stop >= self.shape[0]):
            return self.weight
        return self.weight[start:stop]

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The matrix."""
        return {"weight": self.weight}

    def row_maxima(self) -> Array:
        """The largest |w| of each row."""
        return np.asarray(np.abs(self.weight).max(axis=1, keepdims=True, initial=0.0))

    def hashed(self) -> Iterator[bytes]:
        """The bytes of the matrix only, as in version 0.1."""
        yield np.ascontiguousarray(self.weight).tobytes()


@dataclass(frozen=True, slots=True, eq=False)
class SparseSynapses(Synapses):
    """W as a sparse matrix, compressed by rows (CSR, as in `scipy.sparse.csr_array`).

    Row i has the weights data[indptr[i] : indptr[i + 1]] in the columns indices[...] of the same
    range, which increase.
    """

    shape: tuple[int, int]
    indptr: Ints
    indices: Indices
    data: Array
    kind: ClassVar[str] = "sparse"

    def __post_init__(self) -> None:
        for name, dtype in (("indptr", np.int64), ("indices", np.int32), ("data", np.float64)):
            object.__setattr__(self, name, frozen(getattr(self, name), dtype))
        post, pre = self.shape
        ends = (len(self.indptr) == post + 1) and self.indptr[0] == 0
        if not ends or self.indptr[-1] != len(self.indices) or len(self.data) != len(self.indices):
            raise ValueError("indptr, indices and data are not those of one sparse matrix")
        if (np.diff(self.indptr) < 0).any():
            raise ValueError("indptr of a sparse matrix must not decrease")
        if len(self.indices) and not 0 <= self.indices.min() <= self.indices.max() < pre:
            raise ValueError(f"columns of a sparse matrix must lie in 0..{pre - 1}")
        falls = np.flatnonzero(self.indices[1:] <= self.indices[:-1]) + 1
        if not np.isin(falls, self.indptr).all():
            raise ValueError("columns of a row of a sparse matrix must increase, each once")

    @property
    def values(self) -> Array:
        """The weights that are stored, which may be zero."""
        return self.data

    def with_values(self, values: Array) -> SparseSynapses:
        """The same sparsity pattern with other weights."""
        return replace_unchecked(self, data=frozen(values, np.float64))

    @property
    def T(self) -> SparseSynapses:  # noqa: N802
        """The transposed matrix."""
        post, pre = self.shape
        order = np.argsort(self.indices, kind="stable")
        indptr = np.zeros(pre + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.indices, minlength=pre), out=indptr[1:])
        rows = self.rows()[order]
        return replace_unchecked(
            self,
            shape=(pre, post),
            indptr=frozen(indptr, np.int64),
            indices=frozen(rows, np.int32),
            data=frozen(self.data[order], np.float64),
        )

    def plus(self, other: SparseSynapses) -> SparseSynapses:
        """The sum of two sparse matrices of one shape."""
        rows = np.concatenate([self.rows(), other.rows()])
        columns = np.concatenate([self.indices, other.indices])
        order = np.lexsort((columns, rows))
        rows, columns = rows[order], columns[order]
        data = np.concatenate([self.data, other.data])[order]
        new = np.ones(len(rows), dtype=bool)
        new[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
        starts = np.flatnonzero(new)
        sums = np.add.reduceat(data, starts) if len(starts) else data
        indptr = np.searchsorted(rows[starts], np.arange(self.shape[0] + 1))
        return SparseSynapses(self.shape, indptr, columns[starts], sums)

    def rows(self) -> Indices:
        """The row of each stored weight."""
        return np.repeat(np.arange(self.shape[0], dtype=np.int32), np.diff(self.indptr))

    def apply(self, x: Array) -> Array:
        """The sum over the stored weights of each row."""
        found = np.zeros((len(x), self.shape[0]))
        full = np.flatnonzero(np.diff(self.indptr))
        if len(full):
            for y, sample in zip(found, x, strict=True):
                products = self.data * sample[self.indices]
                y[full] = np.add.reduceat(products, self.indptr[full])
        return found

    def row_sums(self) -> Array:
        """Sums by row."""
        found = np.zeros(self.shape[0])
        full = np.flatnonzero(np.diff(self.indptr))
        if len(full):
            found[full] = np.add.reduceat(self.data, self.indptr[full])
        return found

    def is_transpose_of(self, other: Synapses) -> bool:
        """Whether `other` transposed equals these synapses; fan-ins differ sooner than weights."""
        if not isinstance(other, SparseSynapses) or self.shape != other.shape[::-1]:
            return False
        counts = np.bincount(other.indices, minlength=other.shape[1])
        return np.array_equal(counts, np.diff(self.indptr)) and self.equals(other.T)

    def row_parts(self) -> Iterator[SparseSynapses]:
        """Rows with about `PART` weights in all."""
        rows = max(1, self.shape[0] * PART // max(1, len(self.data)))
        for start in range(0, self.shape[0], rows):
            heads = self.indptr[start : start + rows + 1]
            part = slice(int(heads[0]), int(heads[-1]))
            yield replace_unchecked(
                self,
                shape=(len(heads) - 1, self.shape[1]),
                indptr=heads - heads[0],
                indices=self.indices[part],
                data=self.data[part],
            )

    def fan_in(self) -> Ints:
        """Nonzero weights by row."""
        steps = np.concatenate([[0], np.cumsum(self.data != 0)])
        return np.asarray(np.diff(steps[self.indptr]), dtype=np.int64)

    def fan_out(self) -> Ints:
        """Nonzero weights by column."""
        used = self.indices[self.data != 0]
        return np.asarray(np.bincount(used, minlength=self.shape[1]), dtype=np.int64)

    def to_csr(self) -> SparseSynapses:
        """Itself."""
        return self

    def fill(self, block: Array, start: int) -> None:
        """Write the stored weights of the rows."""
        heads = self.indptr[start : start + len(block) + 1]
        part = slice(int(heads[0]), int(heads[-1]))
        rows = np.repeat(np.arange(len(block)), np.diff(heads))
        block[rows, self.indices[part]] = self.data[part]

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays of the sparse matrix."""
        return {"indptr": self.indptr, "indices": self.indices, "data": self.data}

    @property
    def settings(self) -> dict[str, Any]:
        """The shape."""
        return {"shape": list(self.shape)}

    def row_maxima(self) -> Array:
        """The largest |w| of the row of each stored weight."""
        counts, most = np.diff(self.indptr), np.zeros(self.shape[0])
        full = np.flatnonzero(counts)
        if len(full):
            most[full] = np.maximum.reduceat(np.abs(self.data), self.indptr[full])
        return np.repeat(most, counts)


@dataclass(frozen=True, slots=True, eq=False)
class ConvolutionSynapses(Synapses):
    """Synapses that share the weights of a kernel; the module docstring has the equation.

    Parameters
    ----------
    kernel : array (output channels, channels, height, width)
        The weight of each synapse, including the division of average pooling.
    image : tuple of int
        The shape (channels, height, width) of the input of the convolution.
    stride, padding, pool : int
        As in `torch.nn.Conv2d`; side of the squares that are pooled before it.
    transposed : bool
        Whether the synapses run backwards, from the output of the convolution to its input.
    """

    kernel: Array
    image: Shape
    stride: int = 1
    padding: int = 0
    pool: int = 1
    transposed: bool = False
    kind: ClassVar[str] = "convolution"

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", frozen(self.kernel, np.float64))
        if self.kernel.ndim != 4 or len(self.image) != 3 or self.kernel.shape[1] != self.image[0]:
            raise ValueError(
                f"a kernel (outputs, channels, height, width) of shape {self.kernel.shape} does "
                f"not fit an image of shape {self.image}"
            )
        if self.stride < 1 or self.padding < 0 or self.pool < 1:
            raise ValueError("a convolution needs stride >= 1, padding >= 0 and pool >= 1")
        if self.image[1] % self.pool or self.image[2] % self.pool:
            raise ValueError(f"{self.image} cannot be divided into squares of {self.pool}")
        if min(self.output) < 1:
            raise ValueError(f"a kernel of {self.kernel.shape} leaves no pixel of {self.image}")

    @property
    def pooled(self) -> Shape:
        """The shape of m."""
        channels, height, width = self.image
        return (channels, height // self.pool, width // self.pool)

    @property
    def output(self) -> Shape:
        """The shape of y."""
        sides = (
            (n + 2 * self.padding - k) // self.stride + 1
            for n, k in zip(self.pooled[1:], self.kernel.shape[2:], strict=True)
        )
        return (self.kernel.shape[0], *sides)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of target and source neurons."""
        forwards = (prod(self.output), prod(self.image))
        return forwards[::-1] if self.transposed else forwards

    @property
    def values(self) -> Array:
        """The kernel."""
        return self.kernel

    def with_values(self, values: Array) -> ConvolutionSynapses:
        """The same convolution with another kernel."""
        return replace(self, kernel=values)

    @property
    def T(self) -> ConvolutionSynapses:  # noqa: N802
        """The same kernel in the other direction."""
        return replace(self, transposed=not self.transposed)

    def windows(self) -> Iterator[tuple[int, int, tuple[slice, slice], tuple[slice, slice]]]:
        """For each kernel position (a, b): the slices of y, and of m that it multiplies."""
        for a, b in product(*map(range, self.kernel.shape[2:])):
            pairs = [
                self.overlap(offset, size, out)
                for offset, size, out in zip((a, b), self.pooled[1:], self.output[1:], strict=True)
            ]
            if all(outs.stop > outs.start for outs, _ in pairs):
                yield a, b, (pairs[0][0], pairs[1][0]), (pairs[0][1], pairs[1][1])

    def overlap(self, offset: int, size: int, out: int) -> tuple[slice, slice]:
        """Along one axis: outputs i with inputs j = stride i + offset - padding in 0..size-1."""
        first = max(0, -(-(self.padding - offset) // self.stride))
        last = min(out - 1, (size - 1 + self.padding - offset) // self.stride)
        begin = self.stride * first + offset - self.padding
        end = self.stride * last + offset - self.padding + 1
        return slice(first, last + 1), slice(begin, max(begin, end), self.stride)

    def apply(self, x: Array) -> Array:
        """The convolution, or its transpose."""
        n, pool = len(x), self.pool
        channels, height, width = self.pooled
        if self.transposed:
            y = x.reshape(n, *self.output)
            back = np.zeros((n, *self.pooled))
            for a, b, outs, ins in self.windows():
                back[:, :, ins[0], ins[1]] += mixed(
                    self.kernel[:, :, a, b].T, y[:, :, outs[0], outs[1]]
                )
            return back.repeat(pool, axis=2).repeat(pool, axis=3).reshape(n, -1)
        m = x.reshape(n, channels, height, pool, width, pool).sum(axis=(3, 5))
        if self.kernel.shape[1:] == self.pooled and not self.padding:
            return np.asarray(m.reshape(n, -1) @ self.kernel.reshape(len(self.kernel), -1).T)
        found = np.zeros((n, *self.output))
        for a, b, outs, ins in self.windows():
            found[:, :, outs[0], outs[1]] += mixed(self.kernel[:, :, a, b], m[:, :, ins[0], ins[1]])
        return found.reshape(n, -1)

    def geometry(self) -> tuple[Ints, Ints, Ints]:
        """Target pixel, source pixel and kernel position of all synapses of a pair of channels."""
        width = self.kernel.shape[3]
        columns, wide = self.output[2], self.image[2]
        found = []
        for a, b, outs, ins in self.windows():
            y = (np.arange(outs[0].start, outs[0].stop), np.arange(outs[1].start, outs[1].stop))
            m = [np.arange(inside.start, inside.stop, self.stride) for inside in ins]
            for u, v in product(range(self.pool), repeat=2):
                pixel = (self.pool * m[0][:, None] + u) * wide + (self.pool * m[1] + v)
                place = y[0][:, None] * columns + y[1]
                found.append((place.ravel(), pixel.ravel(), np.full(place.size, a * width + b)))
        if not found:
            nothing = np.zeros(0, dtype=np.int64)
            return nothing, nothing, nothing
        place, pixel, entry = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return (pixel, place, entry) if self.transposed else (place, pixel, entry)

    def channel_rows(self) -> tuple[int, Ints, Ints, Ints, Array]:
        """Pixels of a target channel; row, column and kernel index of its synapses; the kernels.

        Synapses are sorted by row and column. Row o of the kernels has the weights of target
        channel o, by source channel and position.
        """
        target, source, entry = self.geometry()
        kernel = self.kernel.reshape(*self.kernel.shape[:2], -1)
        kernel = kernel.transpose(1, 0, 2) if self.transposed else kernel
        pixels = self.shape[0] // len(kernel)
        inside = self.shape[1] // kernel.shape[1]
        channel = np.arange(kernel.shape[1])[:, None]
        columns = (channel * inside + source).ravel()
        rows = np.broadcast_to(target, (kernel.shape[1], len(target))).ravel()
        places = (channel * kernel.shape[2] + entry).ravel()
        order = np.lexsort((columns, rows))
        flat = kernel.reshape(len(kernel), -1)
        return pixels, rows[order], columns[order], places[order], flat

    def to_csr(self) -> SparseSynapses:
        """W as a sparse matrix without the zeros of the kernel."""
        pixels, rows, columns, places, kernel = self.channel_rows()
        counts, indices, data = [], [], []
        for channel in kernel:
            weights = channel[places]
            used = weights != 0
            counts.append(np.bincount(rows[used], minlength=pixels))
            indices.append(columns[used].astype(np.int32))
            data.append(weights[used])
        indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
        return SparseSynapses(self.shape, indptr, np.concatenate(indices), np.concatenate(data))

    def fill(self, block: Array, start: int) -> None:
        """Write the rows channel by channel."""
        pixels, rows, columns, places, kernel = self.channel_rows()
        stop = start + len(block)
        for channel in range(start // pixels, -(-stop // pixels)):
            at = channel * pixels + rows - start
            inside = (at >= 0) & (at < len(block))
            block[at[inside], columns[inside]] = kernel[channel][places[inside]]

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The kernel."""
        return {"kernel": self.kernel}

    @property
    def settings(self) -> dict[str, Any]:
        """Image, stride, padding, pooling and direction."""
        return {
            "image": list(self.image),
            "stride": self.stride,
            "padding": self.padding,
            "pool": self.pool,
            "transposed": self.transposed,
        }

    def row_maxima(self) -> Array:
        """The largest |w| of each target channel."""
        others = (0, 2, 3) if self.transposed else (1, 2, 3)
        return np.asarray(np.abs(self.kernel).max(axis=others, keepdims=True))


@dataclass(frozen=True, slots=True, eq=False)
class DiagonalSynapses(Synapses):
    """One synapse from each neuron to its counterpart: W = diag(diagonal)."""

    diagonal: Array
    kind: ClassVar[str] = "diagonal"

    def __post_init__(self) -> None:
        object.__setattr__(self, "diagonal", frozen(self.diagonal, np.float64))
        if self.diagonal.ndim != 1:
            raise ValueError(
                f"a diagonal needs one weight per neuron, not shape {self.diagonal.shape}"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """As many targets as sources."""
        return (len(self.diagonal), len(self.diagonal))

    @property
    def values(self) -> Array:
        """The diagonal."""
        return self.diagonal

    def with_values(self, values: Array) -> DiagonalSynapses:
        """Synapses with another diagonal."""
        return DiagonalSynapses(values)

    @property
    def T(self) -> DiagonalSynapses:  # noqa: N802
        """Itself."""
        return self

    def apply(self, x: Array) -> Array:
        """x times the diagonal."""
        return np.asarray(x * self.diagonal)

    def to_csr(self) -> SparseSynapses:
        """The nonzero weights."""
        used = np.flatnonzero(self.diagonal)
        indptr = np.concatenate([[0], np.cumsum(self.diagonal != 0)])
        return SparseSynapses(self.shape, indptr, used.astype(np.int32), self.diagonal[used])

    def fill(self, block: Array, start: int) -> None:
        """Write the part of the diagonal."""
        rows = np.arange(len(block))
        block[rows, start + rows] = self.diagonal[start : start + len(block)]

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The diagonal."""
        return {"diagonal": self.diagonal}

    def row_maxima(self) -> Array:
        """|w| of the one synapse of each neuron."""
        return np.abs(self.diagonal)

    def hashed(self) -> Iterator[bytes]:
        """The bytes of the dense matrix if it is small, as in version 0.1."""
        if len(self.diagonal) <= HASHED_DENSE:
            yield self.dense().tobytes()
        else:
            yield from Synapses.hashed(self)


KINDS: dict[str, type[Synapses]] = {
    each.kind: each
    for each in (DenseSynapses, SparseSynapses, ConvolutionSynapses, DiagonalSynapses)
}
"""Classes of synapses by kind."""


def frozen(array: npt.ArrayLike, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The array as a read-only view."""
    view = np.asarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view


def replace_unchecked(synapses: SparseSynapses, **changes: Any) -> SparseSynapses:  # noqa: ANN401
    """`synapses` with other fields, without checks, which take seconds for 10^8 synapses."""
    made = object.__new__(SparseSynapses)
    for name in ("shape", "indptr", "indices", "data"):
        object.__setattr__(made, name, changes.get(name, getattr(synapses, name)))
    return made


def mixed(weight: Array, image: Array) -> Array:
    """1x1 convolution of images (samples, channels, height, width) with a matrix."""
    n, channels, height, width = image.shape
    return np.asarray(weight @ image.reshape(n, channels, -1)).reshape(n, -1, height, width)


def csr(matrix: Array) -> SparseSynapses:
    """A dense matrix as sparse synapses, without its zeros."""
    rows, columns = np.nonzero(matrix)
    indptr = np.searchsorted(rows, np.arange(len(matrix) + 1))
    return SparseSynapses(
        (matrix.shape[0], matrix.shape[1]), indptr, columns.astype(np.int32), matrix[rows, columns]
    )


def as_synapses(weight: Synapses | Array) -> Synapses:
    """Synapses; a matrix (post, pre) becomes `DenseSynapses`."""
    return weight if isinstance(weight, Synapses) else DenseSynapses(np.asarray(weight))


def rebuild_synapses(
    kind: str, settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> Synapses:
    """The synapses with that kind, settings and arrays."""
    if kind == SparseSynapses.kind:
        post, pre = settings["shape"]
        return SparseSynapses((int(post), int(pre)), **arrays)
    if kind == ConvolutionSynapses.kind:
        image = tuple(int(n) for n in settings["image"])
        rest = {name: settings[name] for name in ("stride", "padding", "pool", "transposed")}
        return ConvolutionSynapses(arrays["kernel"], image, **rest)
    if kind == DiagonalSynapses.kind:
        return DiagonalSynapses(arrays["diagonal"])
    if kind == DenseSynapses.kind:
        return DenseSynapses(arrays["weight"])
    raise ValueError(f"unknown kind of synapses {kind!r}; known: {', '.join(KINDS)}")
