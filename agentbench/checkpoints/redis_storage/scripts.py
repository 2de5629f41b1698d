"""The scripts that run in the Redis server, each as one atomic step. `redis.py` describes the keys."""

from __future__ import annotations

from hashlib import sha1
from typing import Final


class Script:
    """A Lua 5.1 script, including the common functions; the server identifies it by its `sha`."""

    __slots__ = ("sha", "text")

    def __init__(self, body: str) -> None:
        self.text = _SHARED + body
        self.sha = sha1(self.text.encode(), usedforsecurity=False).hexdigest()


_SHARED: Final = r"""
local root = KEYS[1]

local function at(kind, chain)
    return root .. kind .. ':' .. chain
end

local function damaged(key, what)
    error('DAMAGED ' .. key .. ' holds ' .. what, 0)
end

-- A call takes a few thousand arguments at most.
local function in_batches(items, work)
    for first = 1, #items, 1000 do
        work(unpack(items, first, math.min(first + 999, #items)))
    end
end

-- Id and number of the saving from an entry of an order: sequence number and time, NUL, number, id. Nothing from what
-- is no entry.
local function read_entry(entry)
    local mark = string.find(entry, '\0', 1, true)
    local number = mark and tonumber(string.sub(entry, mark + 1, mark + 16))
    if number then return string.sub(entry, mark + 17), number end
end

-- The entry and the chain of a checkpoint, and the token of the call that saved it.
local function locate(id)
    local found = redis.call('HGET', root .. 'index', id)
    if not found then return nil end
    local size = tonumber(string.sub(found, 17, 24), 16)
    if not size or #found < 24 + size then damaged(root .. 'index', 'what is no place') end
    return string.sub(found, 25, 24 + size), string.sub(found, 25 + size), string.sub(found, 1, 16)
end

local function counter(chain)
    return redis.call('HGET', at('meta', chain), 'generation') or redis.call('GET', root .. 'generation') or '0'
end

-- A server that was restarted, or took over from another one, may have lost what was saved last: parts too.
local function generation(chain)
    local server = redis.pcall('INFO', 'server')
    local run = type(server) == 'string' and string.match(server, 'run_id:(%x+)') or '0000000000000000'
    return string.sub(run, 1, 16) .. ':' .. counter(chain)
end

-- Leaves the storage's counter above the chain's, so that the chain never has the same generation again.
local function drop(chain)
    local own, common = counter(chain), redis.call('GET', root .. 'generation') or '0'
    if tonumber(own) > tonumber(common) then redis.call('SET', root .. 'generation', own) end
    redis.call('INCR', root .. 'generation')
    redis.call('UNLINK', at('order', chain), at('heads', chain), at('contents', chain), at('parts', chain),
        at('meta', chain))
    redis.call('ZREM', root .. 'chains', chain)
end

-- Removes those of the checkpoints that the chain holds; ids is ARGV from first to last.
local function remove(chain, first, last)
    local ids, entries = {}, {}
    for i = first, last do
        local entry, owner = locate(ARGV[i])
        if owner == chain then
            ids[#ids + 1] = ARGV[i]
            entries[#entries + 1] = entry
        end
    end
    in_batches(entries, function(...) redis.call('ZREM', at('order', chain), ...) end)
    in_batches(ids, function(...)
        redis.call('HDEL', at('heads', chain), ...)
        redis.call('HDEL', at('contents', chain), ...)
        redis.call('HDEL', root .. 'index', ...)
    end)
    return #ids
end

local function is_empty(chain)
    return redis.call('HLEN', at('heads', chain)) + redis.call('HLEN', at('contents', chain)) == 0
end
"""

# chain -> generation. The storage's counter begins with the time, so that it is another one after a FLUSHALL.
GENERATION = Script(r"""
if counter(ARGV[1]) == '0' then
    local now = redis.call('TIME')
    redis.call('SET', root .. 'generation', now[1] .. string.format('%06d', now[2]))
end
return generation(ARGV[1])
""")

# chain, id, token, generation, expected sequence number or '', sort keys, head, content, (part id, text)*
# -> 'saved' | 'stale' | 'head' .. sequence number
PUT = Script(r"""
local chain, id, token = ARGV[1], ARGV[2], ARGV[3]
local former, owner, saved_by = locate(id)
if saved_by == token then return 'saved' end  -- the client asks again because it did not get the answer
if ARGV[5] ~= '' then
    local newest = redis.call('ZREVRANGE', at('order', chain), 0, 0)[1] or '00010'
    local size = tonumber(string.sub(newest, 1, 4), 16)
    if not size then damaged(at('order', chain), 'what is no entry') end
    local seq = string.sub(newest, 1, 4 + size)
    if seq ~= ARGV[5] then return 'head' .. string.sub(seq, 5) end
end
if generation(chain) ~= ARGV[4] then return 'stale' end

-- A script that fails half way leaves what it wrote. A key of the wrong type fails here, before anything is written.
redis.call('ZCARD', root .. 'chains')
for _, name in ipairs({chain, owner}) do
    redis.call('ZCARD', at('order', name))
    for _, kind in ipairs({'heads', 'contents', 'parts', 'meta'}) do redis.call('HLEN', at(kind, name)) end
end

local before = counter(chain)
local number = redis.call('HINCRBY', at('meta', chain), 'version', 1)
redis.call('HSETNX', at('meta', chain), 'generation', before)
for i = 9, #ARGV, 2 do
    redis.call('HSETNX', at('parts', chain), ARGV[i], ARGV[i + 1])
end
if former then
    redis.call('ZREM', at('order', owner), former)
    if owner ~= chain then
        redis.call('HDEL', at('heads', owner), id)
        redis.call('HDEL', at('contents', owner), id)
        if is_empty(owner) then drop(owner) end
    end
end
local entry = ARGV[6] .. '\0' .. string.format('%016d', number) .. id
redis.call('ZADD', at('order', chain), 0, entry)
redis.call('HSET', at('heads', chain), id, ARGV[7])
redis.call('HSET', at('contents', chain), id, ARGV[8])
redis.call('HSET', root .. 'index', id, token .. string.format('%08x', #entry) .. entry .. chain)
redis.call('ZADD', root .. 'chains', 0, chain)
return 'saved'
""")

# chain, token, generation, number of records, (id, sort keys, head, content)*, (part id, text)*
# -> 'saved' | 'stale' | 'known' .. id | 'head' .. sequence number
PUT_CHAIN = Script(r"""
local chain, token, last = ARGV[1], ARGV[2], 4 + 4 * ARGV[4]
local _, _, saved_by = locate(ARGV[5])
if saved_by == token then return 'saved' end  -- the client asks again because it did not get the answer
local newest = redis.call('ZREVRANGE', at('order', chain), 0, 0)[1]
if newest then
    local size = tonumber(string.sub(newest, 1, 4), 16)
    if not size then damaged(at('order', chain), 'what is no entry') end
    return 'head' .. string.sub(newest, 5, 4 + size)
end
if generation(chain) ~= ARGV[3] then return 'stale' end
for i = 5, last, 4 do
    if locate(ARGV[i]) then return 'known' .. ARGV[i] end
end
redis.call('ZCARD', root .. 'chains')
for _, kind in ipairs({'heads', 'contents', 'parts', 'meta'}) do redis.call('HLEN', at(kind, chain)) end

local before = counter(chain)
redis.call('HSETNX', at('meta', chain), 'generation', before)
for i = last + 1, #ARGV, 2 do
    redis.call('HSETNX', at('parts', chain), ARGV[i], ARGV[i + 1])
end
for i = 5, last, 4 do
    local id, number = ARGV[i], redis.call('HINCRBY', at('meta', chain), 'version', 1)
    local entry = ARGV[i + 1] .. '\0' .. string.format('%016d', number) .. id
    redis.call('ZADD', at('order', chain), 0, entry)
    redis.call('HSET', at('heads', chain), id, ARGV[i + 2])
    redis.call('HSET', at('contents', chain), id, ARGV[i + 3])
    redis.call('HSET', root .. 'index', id, token .. string.format('%08x', #entry) .. entry .. chain)
end
redis.call('ZADD', root .. 'chains', 0, chain)
return 'saved'
""")

# id -> chain, entry, head, content
GET = Script(r"""
local entry, chain = locate(ARGV[1])
if not entry then return false end
local id = ARGV[1]
return {chain, entry, redis.call('HGET', at('heads', chain), id), redis.call('HGET', at('contents', chain), id)}
""")

# chain -> chain, entry, head, content
LATEST = Script(r"""
local chain = ARGV[1]
local entry = redis.call('ZREVRANGE', at('order', chain), 0, 0)[1]
if not entry then return false end
local id = read_entry(entry)
if not id then damaged(at('order', chain), 'what is no entry') end
return {chain, entry, redis.call('HGET', at('heads', chain), id), redis.call('HGET', at('contents', chain), id)}
""")

# chain, '=' .. id that they come before or '', number of them or 'inf', beginning of the head or ''
# -> (entry, head)*, newest first; nothing where the chain does not hold the id
HEADS = Script(r"""
local chain, left, beginning = ARGV[1], ARGV[3] == 'inf' and math.huge or tonumber(ARGV[3]), ARGV[4]
local bound = '+'
if ARGV[2] ~= '' then
    local entry, owner = locate(string.sub(ARGV[2], 2))
    if owner ~= chain then return false end
    bound = '(' .. entry
end
local found = {}
while left > 0 do
    local size = beginning == '' and math.min(left, 500) or 500
    local entries = redis.call('ZREVRANGEBYLEX', at('order', chain), bound, '-', 'LIMIT', 0, size)
    if #entries == 0 then break end
    bound = '(' .. entries[#entries]
    local ids = {}
    for i, entry in ipairs(entries) do ids[i] = read_entry(entry) or '' end
    local heads = redis.call('HMGET', at('heads', chain), unpack(ids))
    for i, entry in ipairs(entries) do
        local head = heads[i]
        if left > 0 and (beginning == '' or head and string.sub(head, 1, #beginning) == beginning) then
            found[#found + 1] = entry
            found[#found + 1] = head
            left = left - 1
        end
    end
end
return found
""")

# chain, id* -> number of those that were there
REMOVE = Script(r"""
local removed = remove(ARGV[1], 2, #ARGV)
if removed > 0 and is_empty(ARGV[1]) then drop(ARGV[1]) end
return removed
""")

# chain, number of a saving, ids that will be removed -> state, number of the last saving, contents saved since then
CONTENTS = Script(r"""
local chain, since = ARGV[1], tonumber(ARGV[2])
local version = redis.call('HGET', at('meta', chain), 'version') or '0'
local reply = {generation(chain) .. ':' .. version, version}
local leaving, wanted = {}, {}
for i = 3, #ARGV do leaving[ARGV[i]] = true end
for _, entry in ipairs(redis.call('ZRANGE', at('order', chain), 0, -1)) do
    local id, number = read_entry(entry)
    if id and number > since and not leaving[id] then wanted[#wanted + 1] = id end
end
in_batches(wanted, function(...)
    for _, content in ipairs(redis.call('HMGET', at('contents', chain), ...)) do
        if content then reply[#reply + 1] = content end
    end
end)
return reply
""")

# chain, state that CONTENTS gave, number of ids, id*, part id* -> number of ids that were there, -1 in another state
SWEEP = Script(r"""
local chain, last = ARGV[1], 3 + ARGV[3]
local version = redis.call('HGET', at('meta', chain), 'version') or '0'
if generation(chain) .. ':' .. version ~= ARGV[2] then return -1 end
local removed = remove(chain, 4, last)
if is_empty(chain) then
    if redis.call('EXISTS', at('meta', chain)) == 1 then drop(chain) end
    return removed
end
local dead = {}
for i = last + 1, #ARGV do dead[#dead + 1] = ARGV[i] end
in_batches(dead, function(...) redis.call('HDEL', at('parts', chain), ...) end)
redis.call('HINCRBY', at('meta', chain), 'generation', 1)
return removed
""")
