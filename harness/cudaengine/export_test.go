package cudaengine

import "ridgepoint/harness/device"

// ExpectedOnDevice returns the bytes that lie on the device for the expected values of every set it holds.
func (e *Engine) ExpectedOnDevice() (all [][]byte, err error) {
	err = e.do(setupLimit, func(s *device.Session) error {
		for el := e.masters.recent.Front(); el != nil; el = el.Next() {
			m := el.Value.(*master)
			for i, at := range m.expected {
				if at == 0 {
					continue
				}
				raw := make([]byte, 8*m.counts[i])
				if err := s.Download(e.stream, raw, at); err != nil {
					return err
				}
				all = append(all, raw)
			}
		}
		return nil
	})
	return all, err
}
