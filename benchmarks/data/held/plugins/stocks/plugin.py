"""Stubs of stocks: only the plans are measured, nothing is called."""


def stock_price(symbol):
    raise NotImplementedError


def price_alert(symbol, price, direction):
    raise NotImplementedError
