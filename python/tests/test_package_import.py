import switchcost


def test_the_package_imports() -> None:
    assert switchcost.__doc__
