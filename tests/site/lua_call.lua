-- Calls one function of burst_buffer.lua as Slurm 24.05 and later do, or (with NO_POLLS) as Slurm 22.05 does.
-- Usage: lua lua_call.lua FILE FUNCTION ARGUMENT...; an argument nodes=LIST becomes the table job_info.
slurm = { SUCCESS = 0, ERROR = -1 }
if not os.getenv("NO_POLLS") then
  slurm.SLURM_BB_BUSY = "BUSY"
end
dofile(arg[1])
local words = {}
for at = 3, #arg do
  local nodes = arg[at]:match("^nodes=(.*)$")
  words[#words + 1] = nodes and { nodes = nodes } or arg[at]
end
local code, text = _G[arg[2]]((table.unpack or unpack)(words))
print(code)
print(text or "")
