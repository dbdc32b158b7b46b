`default_nettype none
package weir_limit_map;
  localparam logic [2:0] RegControl = 3'd0;
  localparam logic [2:0] RegRate = 3'd1;
  localparam logic [2:0] RegBurst = 3'd2;
  localparam logic [2:0] RegStatus = 3'd3;
  localparam logic [2:0] RegHeld = 3'd4;
  localparam logic [2:0] RegBegan = 3'd5;
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
