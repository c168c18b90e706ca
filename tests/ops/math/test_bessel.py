"""Bessel functions of orders 0 and 1: the op table, values to the last digits, ends."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import case, check_op, floats

special = tw.math.special
CIRCLE = np.linspace(0.0, 2 * np.pi, 400, endpoint=False)
LINE = np.linspace(0.0, 14.0, 20001)
WEIGHTS = np.full(LINE.size, 14.0 / 20000)
WEIGHTS[0] /= 2


def i(order):  # A&S 9.6.19
    return lambda x: (
        np.exp(x[..., None] * np.cos(CIRCLE)) * np.cos(order * CIRCLE)
    ).mean(-1)


def j(order):  # A&S 9.1.21
    return lambda x: np.cos(order * CIRCLE - x[..., None] * np.sin(CIRCLE)).mean(-1)


def k(order, scaled=False):  # A&S 9.6.24
    def of(x):
        decay = np.exp(-x[..., None] * (np.cosh(LINE) - scaled))
        return decay * np.cosh(order * LINE) @ WEIGHTS

    return of


def y(order):  # A&S 9.1.22
    def of(x):
        nodes, weights = np.polynomial.legendre.leggauss(60)
        angles = np.pi / 2 * (nodes + 1)
        waves = np.sin(x[..., None] * np.sin(angles) - order * angles)
        growth = np.exp(order * LINE) + np.exp(-order * LINE) * (-1) ** order
        decay = np.exp(-x[..., None] * np.sinh(LINE))
        ends = growth * decay * STEEP
        return waves @ weights / 2 - ends.sum(-1) / np.pi

    return of


# Simpson's rule: the integrand has a slope at 0.
STEEP = np.where(np.arange(LINE.size) % 2, 4.0, 2.0) * 14.0 / 60000
STEEP[0] /= 2

RIGHT = {"low": 0.4, "high": 2.6}
CASES = [
    *[case(f"bessel_{kind}", floats(2, 3), nu=n, expect=f(n))
      for kind, f in [("i", i), ("j", j)] for n in (0, 1, 2)],
    *[case("bessel_y", floats(2, 3, **RIGHT), nu=n, expect=y(n)) for n in (0, 1, 2)],
    *[case("bessel_k", floats(4, **RIGHT), nu=n, scaled=s, expect=k(n, s))
      for n, s in [(0, False), (1, False), (2, False), (0, True), (1, True)]],
    case("bessel_j", floats(8, low=-28.0, high=26.0), nu=1, order=2, expect=j(1)),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


# name -> arguments, and values to 17 digits from mpmath
VALUES = {
    "bessel_i0": [
        (0.25, 1.015686141223608),
        (19.75, 34140102.06010144),
        (20.25, 55579102.84093865),
        (712.0, 2.4684110577627523e+307),
    ],
    "bessel_i1": [
        (0.25, 0.12597910894546793),
        (19.75, 33264251.978947733),
        (20.25, 54188928.20424874),
        (712.0, 2.4666770135246153e+307),
    ],
    "bessel_k0": [
        (1e-200, 460.6329501144676),
        (0.25, 1.5415067512483027),
        (0.96875, 0.44034510802711446),
        (1.5, 0.21380556264752573),
        (19.75, 7.417846666290131e-10),
        (20.25, 4.4439213384486947e-10),
        (600.0, 1.3558285309948523e-262),
    ],
    "bessel_k0e": [
        (1e-200, 460.6329501144676),
        (0.25, 1.9793338485985688),
        (0.96875, 1.1601548376280577),
        (1.5, 0.9582100532948965),
        (19.75, 0.28028113622969775),
        (20.25, 0.27684049777804604),
        (600.0, 0.05115568572023596),
    ],
    "bessel_k1": [
        (1e-200, 1e+200),
        (0.25, 3.7470259744407115),
        (0.96875, 0.6349952118533629),
        (1.5, 0.2773878004568438),
        (19.75, 7.603374846929411e-10),
        (20.25, 4.552355349516988e-10),
        (600.0, 1.356957918112806e-262),
    ],
    "bessel_k1e": [
        (1e-200, 1e+200),
        (0.25, 4.811276588171025),
        (0.96875, 1.6729895563117514),
        (1.5, 1.243165873552553),
        (19.75, 0.2872912635094266),
        (20.25, 0.283595551100096),
        (600.0, 0.05119829772547244),
    ],
    "bessel_j0": [
        (1e-200, 1.0),
        (0.25, 0.9844359292958527),
        (0.96875, 0.778788859544259),
        (1.5, 0.5118276717359181),
        (19.75, 0.17844944575138386),
        (20.25, 0.1454213938736776),
        (-31.0, 0.05120814530454225),
        (12345.75, 0.0005470838047447912),
    ],
    "bessel_j1": [
        (1e-200, 5e-201),
        (0.25, 0.12402597732272692),
        (0.96875, 0.42973215511043644),
        (1.5, 0.5579365079100996),
        (19.75, 0.023999816388423013),
        (20.25, 0.10501496864953361),
        (-31.0, 0.1330243166663142),
        (12345.75, -0.007160047983267244),
    ],
    "bessel_y0": [
        (1e-200, -293.2480438468798),
        (0.25, -0.9315730249300587),
        (0.96875, 0.0634149604088078),
        (1.5, 0.38244892379775886),
        (19.75, 0.01947876322801493),
        (20.25, 0.10139569667320204),
        (31.0, -0.1338326605036443),
        (12345.75, -0.007160070134161814),
    ],
    "bessel_y1": [
        (1e-200, -6.366197723675814e+199),
        (0.25, -2.7041052293152825),
        (0.96875, -0.8088257025437591),
        (1.5, -0.4123086269739113),
        (19.75, -0.17801358614613996),
        (20.25, -0.14296347318040759),
        (31.0, -0.053372826957321595),
        (12345.75, -0.0005473737863660292),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values_are_right_to_the_last_digits(name):
    x, values = np.array(VALUES[name]).T
    f = getattr(special, name)
    digits = {"rtol": 3e-15, "atol": 5e-16 if name[7] in "jy" else 0.0}
    np.testing.assert_allclose(f(x).numpy(), values, **digits)
    np.testing.assert_allclose(f(x[1:-1].astype("f")).numpy(), values[1:-1], 2e-5, 1e-8)


def test_ends_are_limits_and_those_of_tensorflow():
    x = np.array([-np.inf, -2.0, 0.0, np.inf, np.nan])
    inf = np.inf
    for name, ends in {
        "i0": [inf, 2.279585302336067, 1, inf],
        "i1": [-inf, -1.5906368546373291, 0, inf],
        "j0": [0, 0.22389077914123567, 1, 0],
        "j1": [0, -0.5767248077568734, 0, 0],
        "k0": [inf, inf, inf, 0],
        "k0e": [inf, inf, inf, 0],
        "k1": [inf, inf, inf, 0],
        "k1e": [inf, inf, inf, 0],
        "y0": [-inf, -inf, -inf, 0],
        "y1": [-inf, -inf, -inf, 0],
    }.items():
        found = getattr(special, f"bessel_{name}")(x).numpy()
        np.testing.assert_allclose(found, [*ends, np.nan], 1e-15, err_msg=name)
