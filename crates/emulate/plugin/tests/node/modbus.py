# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes and reads registers of the node with pymodbus. Argument: the port on this machine."""

import sys

from pymodbus.client import ModbusTcpClient

client = ModbusTcpClient("127.0.0.1", port=int(sys.argv[1]), timeout=10)
assert client.connect()
written = [(7 * at) % 65536 for at in range(20)]
assert not client.write_registers(3, written).isError()
assert not client.write_register(5, 4711).isError()
written[2] = 4711
assert client.read_holding_registers(3, count=20).registers == written
frames = client.read_input_registers(0, count=2).registers
assert frames[0] << 16 | frames[1] > 0
assert client.read_holding_registers(60, count=10).exception_code == 2
assert client.read_coils(0, count=1).exception_code == 1
client.close()
print("all registers are as written")
