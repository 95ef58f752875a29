// Everything this header declares is in the emulator already.
#pragma once
