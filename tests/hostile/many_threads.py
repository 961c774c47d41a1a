# Promise: threads without number stop at the memory cap.
# Expect: raised out_of_memory
# Walls: none
import threading
import time


def attack(honest, *arguments):
    while True:
        threading.Thread(target=time.sleep, args=(10**6,), daemon=True).start()
