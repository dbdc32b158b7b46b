// SPDX-License-Identifier: MIT OR Apache-2.0
// Generated from weir_limit.rdl by rtl/limit/registers/generate.py.
// Word…: address / 4. Reg…: the same within a source's registers; RegBegan stands for BEGAN. Others: a field's lowest bit.
`default_nettype none

package weir_limit_map;
  localparam int SourceBit = 15;
  localparam int StrideBits = 5;
  localparam logic [12:0] WordId = 13'd0;
  localparam logic [12:0] WordShape = 13'd1;
  localparam logic [12:0] WordWidths = 13'd2;
  localparam logic [12:0] WordTick = 13'd3;
  localparam logic [12:0] WordBegan = 13'd16;
  localparam logic [2:0] RegControl = 3'd0;
  localparam logic [2:0] RegRate = 3'd1;
  localparam logic [2:0] RegBurst = 3'd2;
  localparam logic [2:0] RegStatus = 3'd3;
  localparam logic [2:0] RegHeld = 3'd4;
  localparam logic [2:0] RegBegan = 3'd5;
  localparam logic [31:0] IdValue = 32'h57454901;
  localparam int ShapeLast = 0;
  localparam int ShapeForm = 12;
  localparam int ShapeBursts = 16;
  localparam int ShapeEnables = 17;
  localparam int ShapeLimits = 18;
  localparam int ShapeOverload = 19;
  localparam int ShapeLock = 20;
  localparam int ShapeMsi = 21;
  localparam int ShapeBypass = 22;
  localparam int ShapePulse = 23;
  localparam int WidthsPhase = 0;
  localparam int WidthsRate = 8;
  localparam int WidthsBurst = 16;
  localparam int WidthsHeld = 24;
  localparam int ControlEnable = 0;
  localparam int ControlLimit = 1;
  localparam int ControlPolicy = 2;
  localparam int ControlNotify = 3;
  localparam int ControlLock = 31;
  localparam int StatusOpen = 0;
  localparam int StatusNoted = 1;
  localparam int StatusOverload = 2;
endpackage

`default_nettype wire
